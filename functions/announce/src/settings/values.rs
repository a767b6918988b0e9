//! What the settings mean: plain values, each read from its text or not at all.

use std::fmt;

/// Where the webhook's document is kept.
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

/// A value that was read; `None`: it is none that is accepted.
type Accepted<T> = Option<T>;

/// A name, which is not repeated if it is none: it may be the webhook's URL itself.
pub(super) fn stored_name(value: &str) -> Result<Option<StoredName>, String> {
    match value {
        "" => Ok(None),
        name if name.starts_with('/') && !name.ends_with('/') => Ok(Some(StoredName::Parameter(name.to_owned()))),
        arn => region_of(arn, "secretsmanager")
            .map(|region| Some(StoredName::Secret { arn: arn.to_owned(), region }))
            .ok_or_else(|| "is no parameter's name and no secret's ARN".to_owned()),
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
