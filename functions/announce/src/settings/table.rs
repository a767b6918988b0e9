//! Every setting, as the documents and the template show it.

use spillway_environment::Setting;

/// The default of what is not there unless it is asked for.
const NONE: &str = "";

pub(super) const WEBHOOK: Setting = Setting {
    name: "SPILLWAY_WEBHOOK",
    default: NONE,
    accepted: "the name of a parameter, which begins with /, or the whole ARN of a secret, or nothing",
    meaning: "where the [document of the webhook](announcements.md#the-document-of-the-webhook) is kept, in Parameter \
              Store or in Secrets Manager: the address to post to, headers, a proxy, the format or a template",
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

/// The queue that the template gives the function.
pub(super) const QUEUE_ARN: Setting = Setting {
    name: "SPILLWAY_QUEUE_ARN",
    default: NONE,
    accepted: "the ARN of an SQS queue",
    meaning: "whose messages are accepted; the template sets it",
};

/// Every setting there is, as `docs/settings.md` orders them.
pub(super) const SETTINGS: [Setting; 4] = [WEBHOOK, TOPIC_ARN, TOPIC_FORMAT, RECEIPT_BUCKET];

/// Every variable of ours that the function may find in its environment.
pub(super) fn known() -> Vec<Setting> {
    [&SETTINGS[..], &[QUEUE_ARN]].concat()
}
