//! The settings: environment variables, read and checked once, every problem reported at once.
//!
//! * `table`: every setting with its default, as the documents and the template show it
//! * `values`: what their values mean

mod table;
mod values;

use spillway_settings::environment::{Reader, SettingsError};
pub(crate) use values::StoredName;

/// Everything that the person who deploys can choose.
#[derive(Debug)]
pub(crate) struct Settings {
    /// ARN of the queue whose messages are accepted; empty: none is.
    pub(crate) queue_arn: String,
    /// Where the document of the webhook is kept.
    pub(crate) webhook: Option<StoredName>,
    pub(crate) topic: Option<Topic>,
}

/// The SNS topic.
#[derive(Debug)]
pub(crate) struct Topic {
    pub(crate) arn: String,
    pub(crate) region: String,
}

impl Settings {
    /// Reads the settings from environment variables; those that are not ours are passed over.
    pub(crate) fn from_variables(variables: impl Iterator<Item = (String, String)>) -> Result<Self, SettingsError> {
        let mut reader = Reader::new(variables, &table::known());
        let queue_arn = reader.read(table::QUEUE_ARN, |arn| Some(arn.to_owned()));
        let webhook = reader.read_or_explain(table::WEBHOOK, values::stored_name);
        let arn = reader.read(table::TOPIC_ARN, values::topic_arn);
        reader.finish(Self { queue_arn, webhook, topic: arn.map(|(arn, region)| Topic { arn, region }) })
    }
}

#[cfg(test)]
mod tests;
