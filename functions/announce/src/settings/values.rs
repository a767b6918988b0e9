//! What the settings mean: plain values, each read from its text or not at all.

use std::fmt;

use gotemplate_json::Template;
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use secrecy::SecretString;

use crate::form::Form;

/// Where a URL is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StoredName {
    /// In Parameter Store.
    Parameter(String),
    /// In Secrets Manager.
    Secret { arn: String, region: String },
}

impl fmt::Display for StoredName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parameter(name) => f.write_str(name),
            Self::Secret { arn, .. } => f.write_str(arn),
        }
    }
}

/// In which form notifications are published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TopicFormat {
    /// Plain words.
    Text,
    /// The schema of Amazon Q Developer in chat applications.
    AmazonQ,
}

/// A value that was read; `None`: it is none that is accepted.
type Accepted<T> = Option<T>;

/// Whether that is a URL that a webhook or a proxy may have.
pub(crate) fn is_url(value: &str) -> bool {
    Url::parse(value).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
}

/// A URL, which is not repeated if it is none.
pub(super) fn url(value: &str) -> Result<Option<SecretString>, String> {
    match value {
        "" => Ok(None),
        url if is_url(url) => Ok(Some(url.to_owned().into())),
        _ => Err("is no http or https URL".to_owned()),
    }
}

/// A name, which is not repeated if it is none: it may be the URL itself.
pub(super) fn stored_name(value: &str) -> Result<Option<StoredName>, String> {
    match value {
        "" => Ok(None),
        name if name.starts_with('/') && !name.ends_with('/') => Ok(Some(StoredName::Parameter(name.to_owned()))),
        arn => region_of(arn, "secretsmanager")
            .map(|region| Some(StoredName::Secret { arn: arn.to_owned(), region }))
            .ok_or_else(|| "is no parameter's name and no secret's ARN".to_owned()),
    }
}

/// What a webhook is told of a message's form when nobody says otherwise.
const JSON: &str = r#"{"Content-Type":"application/json"}"#;

/// Headers, none of which is repeated if it is no header.
pub(crate) fn headers(value: &str) -> Result<HeaderMap, String> {
    let value = if value.is_empty() { JSON } else { value };
    let object: serde_json::Map<_, _> =
        serde_json::from_str(value).map_err(|_| "is no JSON object of names and texts".to_owned())?;
    object
        .iter()
        .map(|(name, text)| {
            let text = text.as_str().ok_or_else(|| format!("has a value that is no text, at {name:?}"))?;
            let header =
                HeaderName::try_from(name).map_err(|_| format!("has a name that no header can have: {name:?}"))?;
            let mut text =
                HeaderValue::try_from(text).map_err(|_| format!("has a value that no header can have, at {name:?}"))?;
            text.set_sensitive(true);
            Ok((header, text))
        })
        .collect()
}

pub(super) fn webhook_format(value: &str) -> Accepted<Form> {
    match value {
        "slack" => Some(Form::Slack),
        "json" => Some(Form::Json),
        _ => None,
    }
}

/// A template, or where it does not parse.
pub(super) fn template(value: &str) -> Result<Option<Form>, String> {
    match value {
        "" => Ok(None),
        text => Template::parse(text)
            .map(|template| Some(Form::Template(template)))
            .map_err(|error| format!("does not parse, at {error}")),
    }
}

/// A topic and its Region. One that is first in, first out would need a group for each message.
pub(super) fn topic_arn(value: &str) -> Accepted<Option<(String, String)>> {
    match value {
        "" => Some(None),
        arn if arn.strip_suffix(".fifo").is_some() => None,
        arn => region_of(arn, "sns").map(|region| Some((arn.to_owned(), region))),
    }
}

pub(super) fn topic_format(value: &str) -> Accepted<TopicFormat> {
    match value {
        "text" => Some(TopicFormat::Text),
        "amazon-q" => Some(TopicFormat::AmazonQ),
        _ => None,
    }
}

/// A name that S3 takes for a bucket.
pub(super) fn bucket(value: &str) -> Accepted<Option<String>> {
    let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || ".-".contains(c);
    match value {
        "" => Some(None),
        name => ((3..=63).contains(&name.len()) && name.chars().all(legal)).then(|| Some(name.to_owned())),
    }
}

/// The Region of an ARN of that service: `arn:PARTITION:SERVICE:REGION:ACCOUNT:NAME`.
fn region_of(arn: &str, service: &str) -> Option<String> {
    match arn.splitn(6, ':').collect::<Vec<_>>().as_slice() {
        ["arn", _, its, region, account, name]
            if *its == service && !region.is_empty() && !account.is_empty() && !name.is_empty() =>
        {
            Some((*region).to_owned())
        }
        _ => None,
    }
}
