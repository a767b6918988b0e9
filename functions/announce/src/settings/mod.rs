//! Settings of the announce function: environment variables, which are read and checked once.

mod table;
mod values;

use spillway_settings::environment::{Reader, SettingsError};
pub(crate) use values::StoredName;

#[derive(Debug)]
pub(crate) struct Settings {
    /// ARN of the function's own queue. If empty, no message is accepted.
    pub(crate) queue_arn: String,
    /// Log group of the drain function, to which messages link; empty if unknown.
    pub(crate) log_group: String,
    pub(crate) webhook: Option<StoredName>,
    pub(crate) topic: Option<TopicSettings>,
}

#[derive(Debug)]
pub(crate) struct TopicSettings {
    pub(crate) arn: String,
    pub(crate) region: String,
}

impl Settings {
    pub(crate) fn from_variables(variables: impl Iterator<Item = (String, String)>) -> Result<Self, SettingsError> {
        let mut reader = Reader::new(variables, &table::known());
        let queue_arn = reader.read(table::QUEUE_ARN, |arn| Some(arn.to_owned()));
        let log_group = reader.read(table::LOG_GROUP, |name| Some(name.to_owned()));
        let webhook = reader.read_or_explain(table::WEBHOOK, values::stored_name);
        let arn = reader.read(table::TOPIC_ARN, values::topic_arn);
        reader.finish(Self {
            queue_arn,
            log_group,
            webhook,
            topic: arn.map(|(arn, region)| TopicSettings { arn, region }),
        })
    }
}

#[cfg(test)]
mod tests;
