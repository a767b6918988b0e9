//! Names, defaults and descriptions of the settings.

use spillway_settings::environment::Setting;

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

/// ARN of the function's queue. The CloudFormation template sets this ARN.
pub(super) const QUEUE_ARN: Setting = Setting {
    name: "SPILLWAY_QUEUE_ARN",
    default: NONE,
    accepted: "the ARN of an SQS queue",
    meaning: "whose messages are accepted; the template sets it",
};

/// Log group of the drain function. The CloudFormation template sets the value.
pub(super) const LOG_GROUP: Setting = Setting {
    name: "SPILLWAY_LOG_GROUP",
    default: NONE,
    accepted: "the name of a log group",
    meaning: "which the links of messages query; the template sets it",
};

/// Settings in the order of `docs/settings.md`.
pub(super) const SETTINGS: [Setting; 2] = [WEBHOOK, TOPIC_ARN];

pub(super) fn known() -> Vec<Setting> {
    [&SETTINGS[..], &[QUEUE_ARN, LOG_GROUP]].concat()
}
