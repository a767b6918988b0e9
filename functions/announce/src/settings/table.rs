//! Every setting, as the documents and the template show it.

use spillway_startup::settings::Setting;

/// The default of what is not there unless it is asked for.
const NONE: &str = "";

pub(super) const WEBHOOK_URL: Setting = Setting {
    name: "SPILLWAY_WEBHOOK_URL",
    default: NONE,
    accepted: "an address that begins with https:// or http://, or nothing",
    meaning: "where messages are posted to. Whoever has it can write to the channel: better is the next one",
};
pub(super) const WEBHOOK_URL_FROM: Setting = Setting {
    name: "SPILLWAY_WEBHOOK_URL_FROM",
    default: NONE,
    accepted: "the name of a parameter, which begins with /, or the whole ARN of a secret, or nothing",
    meaning: "where that address is kept: in Parameter Store, or in Secrets Manager",
};
pub(super) const WEBHOOK_HEADERS: Setting = Setting {
    name: "SPILLWAY_WEBHOOK_HEADERS",
    default: NONE,
    accepted: "a JSON object whose values are texts, or nothing",
    meaning: "the headers of the post; nothing means {\"Content-Type\":\"application/json\"}",
};
pub(super) const WEBHOOK_PROXY: Setting = Setting {
    name: "SPILLWAY_WEBHOOK_PROXY",
    default: NONE,
    accepted: "an address that begins with https:// or http://, or nothing",
    meaning: "the HTTP proxy on the way to the webhook",
};
pub(super) const WEBHOOK_FORMAT: Setting = Setting {
    name: "SPILLWAY_WEBHOOK_FORMAT",
    default: "slack",
    accepted: "slack or json",
    meaning: "what is posted: a Slack message with blocks, or plain JSON",
};
pub(super) const WEBHOOK_TEMPLATE: Setting = Setting {
    name: "SPILLWAY_WEBHOOK_TEMPLATE",
    default: NONE,
    accepted: "a Go template of up to 3000 characters, or nothing",
    meaning: "what is posted, as aws-node-termination-handler has it; it wins over the format. All variables together \
               may have 4 KB",
};
pub(super) const TOPIC_ARN: Setting = Setting {
    name: "SPILLWAY_TOPIC_ARN",
    default: NONE,
    accepted: "the ARN of an SNS topic, or nothing",
    meaning: "where messages are published to",
};
pub(super) const TOPIC_FORMAT: Setting = Setting {
    name: "SPILLWAY_TOPIC_FORMAT",
    default: "text",
    accepted: "text or amazon-q",
    meaning: "what is published: a text for people, or what Amazon Q Developer in chat applications shows",
};
pub(super) const RECEIPT_BUCKET: Setting = Setting {
    name: "SPILLWAY_RECEIPT_BUCKET",
    default: NONE,
    accepted: "the name of an S3 bucket, or nothing",
    meaning: "where each receipt is put, as an object of its own",
};

/// Every setting there is, as `docs/settings.md` orders them.
pub(super) const SETTINGS: [Setting; 9] = [
    WEBHOOK_URL,
    WEBHOOK_URL_FROM,
    WEBHOOK_HEADERS,
    WEBHOOK_PROXY,
    WEBHOOK_FORMAT,
    WEBHOOK_TEMPLATE,
    TOPIC_ARN,
    TOPIC_FORMAT,
    RECEIPT_BUCKET,
];
