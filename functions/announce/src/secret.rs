//! The webhook's URL, where it is kept: in Parameter Store or in Secrets Manager. Read once, and again when the webhook
//! does not accept it any more.

use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::aws::{Aws, AwsError, Service};
use crate::settings::{StoredName, is_url};

const SSM: Service = Service { id: "SSM", host: "ssm" };
const SECRETS_MANAGER: Service = Service { id: "SECRETS_MANAGER", host: "secretsmanager" };

/// A URL that is kept in AWS.
#[derive(Debug)]
pub(crate) struct Stored {
    name: StoredName,
    aws: Aws,
    read: Mutex<Option<SecretString>>,
}

/// Why the URL could not be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SecretError {
    #[error("the webhook's URL cannot be read: {0}")]
    Aws(#[from] AwsError),
    #[error("{0} holds no http or https URL, nor a JSON object with one as webhookurl or as its only value")]
    NoUrl(StoredName),
}

impl Stored {
    pub(crate) fn new(name: StoredName, aws: Aws) -> Self {
        Self { name, aws, read: Mutex::new(None) }
    }

    /// The URL.
    pub(crate) async fn url(&self) -> Result<SecretString, SecretError> {
        let mut read = self.read.lock().await;
        if let Some(url) = read.as_ref() {
            return Ok(url.clone());
        }
        let url = self.fetch().await?;
        Ok(read.insert(url).clone())
    }

    /// Reads it again; the answer: the URL that took the place of the old one, if any did.
    pub(crate) async fn changed(&self, old: &SecretString) -> Result<Option<SecretString>, SecretError> {
        let new = self.fetch().await?;
        *self.read.lock().await = Some(new.clone());
        Ok((new.expose_secret() != old.expose_secret()).then_some(new))
    }

    async fn fetch(&self) -> Result<SecretString, SecretError> {
        let (answer, pointer) = match &self.name {
            StoredName::Parameter(name) => {
                let request = json!({"Name": name, "WithDecryption": true});
                (
                    self.aws.json(SSM, None, ("ssm:GetParameter", "AmazonSSM.GetParameter"), &request).await?,
                    "/Parameter/Value",
                )
            }
            StoredName::Secret { arn, region } => {
                let action = ("secretsmanager:GetSecretValue", "secretsmanager.GetSecretValue");
                let request = json!({"SecretId": arn});
                (self.aws.json(SECRETS_MANAGER, Some(region), action, &request).await?, "/SecretString")
            }
        };
        let value = answer.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        url_in(value).ok_or_else(|| SecretError::NoUrl(self.name.clone()))
    }
}

/// The URL by itself, or in an object, as Secrets Manager's console makes one; by the name that NTH's secret has.
fn url_in(value: &str) -> Option<SecretString> {
    let object = serde_json::from_str::<Value>(value).ok();
    let values = object.as_ref().and_then(Value::as_object);
    let url = match values {
        Some(values) if values.len() == 1 => values.values().next().and_then(Value::as_str),
        Some(values) => values.get("webhookurl").and_then(Value::as_str),
        None => Some(value.trim()),
    };
    url.filter(|url| is_url(url)).map(SecretString::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_stands_by_itself_or_in_an_object() {
        let url = |value: &str| url_in(value).map(|url| url.expose_secret().to_owned());
        let expected = Some("https://hooks.example/T1".to_owned());
        assert_eq!(url("https://hooks.example/T1\n"), expected);
        assert_eq!(url(r#"{"any": "https://hooks.example/T1"}"#), expected);
        assert_eq!(url(r#"{"webhookurl": "https://hooks.example/T1", "team": "shop"}"#), expected);
        assert_eq!(url(r#"{"a": "https://hooks.example/T1", "b": ""}"#), None);
        for value in ["", "hooks.example/T1", "ftp://hooks.example", "{}", "[]"] {
            assert_eq!(url(value), None, "{value}");
        }
    }
}
