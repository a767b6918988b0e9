//! Parsers of the settings.

use std::fmt;

/// Parameter or secret that contains the webhook's document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StoredName {
    /// Name of a parameter in Parameter Store.
    Parameter(String),
    /// Secret in Secrets Manager.
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

/// Parsed value. `None` if invalid.
type Accepted<T> = Option<T>;

/// Parses the name of a parameter or the ARN of a secret. Errors do not contain the value, which may be secret.
pub(super) fn stored_name(value: &str) -> Result<Option<StoredName>, String> {
    match value {
        "" => Ok(None),
        name if name.starts_with('/') && !name.ends_with('/') => Ok(Some(StoredName::Parameter(name.to_owned()))),
        arn => region_of(arn, "secretsmanager")
            .map(|region| Some(StoredName::Secret { arn: arn.to_owned(), region }))
            .ok_or_else(|| "is neither the name of a parameter nor the ARN of a secret".to_owned()),
    }
}

/// Parses the ARN of an SNS topic, and returns the ARN and the Region. Refuses FIFO topics.
pub(super) fn topic_arn(value: &str) -> Accepted<Option<(String, String)>> {
    match value {
        "" => Some(None),
        arn if arn.strip_suffix(".fifo").is_some() => None,
        arn => region_of(arn, "sns").map(|region| Some((arn.to_owned(), region))),
    }
}

/// Returns the Region in an ARN of the given service: `arn:PARTITION:SERVICE:REGION:ACCOUNT:NAME`.
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
