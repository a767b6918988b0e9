//! The settings: environment variables, read and checked once, every problem reported at once.
//!
//! * `table`: every setting with its default, as the documents and the template show it
//! * `values`: what their values mean

mod table;
mod values;

use reqwest::header::HeaderMap;
use secrecy::SecretString;
use spillway_startup::settings::{Reader, SettingsError};

use crate::form::Form;
#[cfg(test)]
pub(crate) use values::headers;
pub(crate) use values::{StoredName, TopicFormat, is_url};

/// Everything that the person who deploys can choose.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) webhook: Option<Webhook>,
    pub(crate) topic: Option<Topic>,
    /// The S3 bucket that receipts are kept in.
    pub(crate) receipt_bucket: Option<String>,
}

/// The webhook.
#[derive(Debug)]
pub(crate) struct Webhook {
    pub(crate) address: Address,
    /// The headers of each request, which may be secrets.
    pub(crate) headers: HeaderMap,
    /// Its URL may have a password.
    pub(crate) proxy: Option<SecretString>,
    pub(crate) form: Form,
}

/// The webhook's URL, which is a secret: who knows it may write to the channel.
#[derive(Debug)]
pub(crate) enum Address {
    Given(SecretString),
    /// Where it is kept.
    Stored(StoredName),
}

/// The SNS topic.
#[derive(Debug)]
pub(crate) struct Topic {
    pub(crate) arn: String,
    pub(crate) region: String,
    pub(crate) format: TopicFormat,
}

impl Settings {
    /// Reads the settings from environment variables; those that are not ours are passed over.
    pub(crate) fn from_variables(variables: impl Iterator<Item = (String, String)>) -> Result<Self, SettingsError> {
        let mut reader = Reader::new(variables, &table::SETTINGS);
        let url = reader.read_or_explain(table::WEBHOOK_URL, values::url);
        let url_from = reader.read_or_explain(table::WEBHOOK_URL_FROM, values::stored_name);
        let headers = reader.read_or_explain(table::WEBHOOK_HEADERS, values::headers);
        let proxy = reader.read_or_explain(table::WEBHOOK_PROXY, values::url);
        let format = reader.read(table::WEBHOOK_FORMAT, values::webhook_format);
        let template = reader.read_or_explain(table::WEBHOOK_TEMPLATE, values::template);
        let arn = reader.read(table::TOPIC_ARN, values::topic_arn);
        let topic_format = reader.read(table::TOPIC_FORMAT, values::topic_format);
        let receipt_bucket = reader.read(table::RECEIPT_BUCKET, values::bucket);
        let address = match (url, url_from) {
            (Some(_), Some(stored)) => {
                let both = [(table::WEBHOOK_URL, "set".to_owned()), (table::WEBHOOK_URL_FROM, stored.to_string())];
                reader.contradict(both, "there is one webhook");
                None
            }
            (Some(url), None) => Some(Address::Given(url)),
            (None, Some(stored)) => Some(Address::Stored(stored)),
            (None, None) => None,
        };
        reader.finish(Self {
            webhook: address.map(|address| Webhook { address, headers, proxy, form: template.unwrap_or(format) }),
            topic: arn.map(|(arn, region)| Topic { arn, region, format: topic_format }),
            receipt_bucket,
        })
    }
}

#[cfg(test)]
mod tests;
