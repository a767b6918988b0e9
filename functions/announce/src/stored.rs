//! The webhook's document, where it is kept: in Parameter Store or in Secrets Manager. Read when a message is to be sent,
//! and again when it may have changed.

use std::sync::Arc;
use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::aws::{Aws, AwsError, Service};
use crate::document::{Document, DocumentError};
use crate::settings::StoredName;
use crate::target::Target;

const SSM: Service = Service { id: "SSM", host: "ssm" };
const SECRETS_MANAGER: Service = Service { id: "SECRETS_MANAGER", host: "secretsmanager" };

/// For how long a document is taken to be what was read. Lambda keeps a function for hours, and who has changed a template
/// wants to see it.
const FRESH: Duration = Duration::from_mins(5);

/// A document that is kept in AWS, and what was made of it.
#[derive(Debug)]
pub(crate) struct Stored {
    name: StoredName,
    aws: Aws,
    read: Mutex<Option<Read>>,
}

#[derive(Debug)]
struct Read {
    text: SecretString,
    target: Arc<Target>,
    at: Instant,
}

/// Why there is no document.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum StoredError {
    #[error("the webhook's document {0} cannot be read: {1}")]
    Aws(StoredName, AwsError),
    #[error("the webhook's document {0} {1}")]
    Wrong(StoredName, DocumentError),
    #[error("the webhook's document {0} makes no HTTP client: {1}")]
    Client(StoredName, String),
}

impl Stored {
    pub(crate) fn new(name: StoredName, aws: Aws) -> Self {
        Self { name, aws, read: Mutex::new(None) }
    }

    /// Where messages go.
    pub(crate) async fn target(&self) -> Result<Arc<Target>, StoredError> {
        let mut read = self.read.lock().await;
        match read.as_ref().filter(|read| read.at.elapsed() < FRESH) {
            Some(read) => Ok(Arc::clone(&read.target)),
            None => self.read_into(&mut read).await,
        }
    }

    /// Reads the document again; the answer: where messages go now, if that has changed.
    pub(crate) async fn changed(&self, old: &Arc<Target>) -> Result<Option<Arc<Target>>, StoredError> {
        let new = self.read_into(&mut *self.read.lock().await).await?;
        Ok((!Arc::ptr_eq(old, &new)).then_some(new))
    }

    /// A document that is the same goes on with its connections.
    async fn read_into(&self, read: &mut Option<Read>) -> Result<Arc<Target>, StoredError> {
        let text = self.fetch().await.map_err(|error| StoredError::Aws(self.name.clone(), error))?;
        let same = read.as_ref().filter(|read| read.text.expose_secret() == text.expose_secret());
        let target = match same {
            Some(read) => Arc::clone(&read.target),
            None => Arc::new(self.target_of(&text)?),
        };
        *read = Some(Read { text, target: Arc::clone(&target), at: Instant::now() });
        Ok(target)
    }

    fn target_of(&self, text: &SecretString) -> Result<Target, StoredError> {
        let document = Document::parse(text.expose_secret());
        let document = document.map_err(|error| StoredError::Wrong(self.name.clone(), error))?;
        Target::new(document).map_err(|error| StoredError::Client(self.name.clone(), error.to_string()))
    }

    async fn fetch(&self) -> Result<SecretString, AwsError> {
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
        Ok(answer.pointer(pointer).and_then(Value::as_str).unwrap_or_default().into())
    }

    /// For tests: one that has been read just now.
    #[cfg(test)]
    pub(crate) fn holding(document: Document) -> Self {
        let target = Arc::new(Target::new(document).expect("a client"));
        let read = Read { text: SecretString::default(), target, at: Instant::now() };
        let name = StoredName::Parameter("/spillway/webhook".to_owned());
        Self { name, aws: Aws::of_nobody(), read: Mutex::new(Some(read)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_document_that_is_wrong_is_named_and_its_secrets_are_not() {
        let stored = Stored::new(StoredName::Parameter("/spillway/webhook".to_owned()), Aws::of_nobody());
        let error = stored.target_of(&"https://hooks.example/hush".into()).expect_err("no document").to_string();
        assert!(error.starts_with("the webhook's document /spillway/webhook is no JSON object; it takes "), "{error}");
        assert!(!error.contains("hush"), "{error}");
    }
}
