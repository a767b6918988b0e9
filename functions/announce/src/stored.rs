//! The webhook's document, where it is kept: in Parameter Store or in Secrets Manager. Read when a message is to be sent,
//! and again when it may have changed.

use std::sync::Arc;
use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};
use spillway_aws_call::{Call, CallError, Caller, Service};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::document::{Document, DocumentError};
use crate::retry;
use crate::settings::StoredName;
use crate::target::Target;

#[cfg(test)]
use crate::wire;

/// How long a document is used until it is read again. Lambda keeps a process for hours, and somebody who has changed the
/// document wants to see the effect.
const FRESH: Duration = Duration::from_mins(5);

/// A document that is kept in AWS, and what was made of it.
#[derive(Debug)]
pub(crate) struct Stored {
    name: StoredName,
    aws: Caller,
    read: Mutex<Option<Read>>,
}

#[derive(Debug)]
struct Read {
    text: SecretString,
    target: Arc<Target>,
    at: Instant,
}

/// Why there is no document.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoredError {
    #[error("the webhook's document {0} cannot be read")]
    Aws(StoredName, #[source] CallError),
    #[error("the webhook's document {0} {1}")]
    Wrong(StoredName, DocumentError),
    #[error("the webhook's document {0} makes no HTTP client: {1}")]
    Client(StoredName, String),
}

impl Stored {
    pub(crate) fn new(name: StoredName, aws: Caller) -> Self {
        Self { name, aws, read: Mutex::new(None) }
    }

    /// Where messages go. The document is read at the latest by `end`.
    pub(crate) async fn target(&self, end: Instant) -> Result<Arc<Target>, StoredError> {
        let mut read = self.read.lock().await;
        match read.as_ref().filter(|read| read.at.elapsed() < FRESH) {
            Some(read) => Ok(Arc::clone(&read.target)),
            None => self.read_into(&mut read, end).await,
        }
    }

    /// Reads the document again. Answers where messages go now, if that has changed.
    pub(crate) async fn changed(&self, old: &Arc<Target>, end: Instant) -> Result<Option<Arc<Target>>, StoredError> {
        let new = self.read_into(&mut *self.read.lock().await, end).await?;
        Ok((!Arc::ptr_eq(old, &new)).then_some(new))
    }

    /// Reads the document. If it has not changed, the client stays, with its connections.
    async fn read_into(&self, read: &mut Option<Read>, end: Instant) -> Result<Arc<Target>, StoredError> {
        let text = self.fetch(end).await.map_err(|error| StoredError::Aws(self.name.clone(), error))?;
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

    async fn fetch(&self, end: Instant) -> Result<SecretString, CallError> {
        let request = match &self.name {
            StoredName::Parameter(name) => json!({"Name": name, "WithDecryption": true}),
            StoredName::Secret { arn, .. } => json!({"SecretId": arn}),
        };
        let request = request.to_string();
        let (call, value) = match &self.name {
            StoredName::Parameter(_) => {
                let call = Call::json(Service::Ssm, "ssm:GetParameter", "AmazonSSM.GetParameter", &request);
                (call, "/Parameter/Value")
            }
            StoredName::Secret { region, .. } => {
                let (action, target) = ("secretsmanager:GetSecretValue", "secretsmanager.GetSecretValue");
                let call = Call::json(Service::SecretsManager, action, target, &request);
                (Call { region: Some(region), ..call }, "/SecretString")
            }
        };
        let answer = retry::call(call.action, end, async || self.aws.json(&call).await).await?;
        Ok(answer.pointer(value).and_then(Value::as_str).unwrap_or_default().into())
    }

    /// For tests: one that has been read just now.
    #[cfg(test)]
    pub(crate) fn holding(document: Document) -> Self {
        let target = Arc::new(Target::new(document).expect("a client"));
        let read = Read { text: SecretString::default(), target, at: Instant::now() };
        let name = StoredName::Parameter("/spillway/webhook".to_owned());
        Self { name, aws: wire::no_aws(), read: Mutex::new(Some(read)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_document_that_is_wrong_is_named_and_its_secrets_are_not() {
        let stored = Stored::new(StoredName::Parameter("/spillway/webhook".to_owned()), wire::no_aws());
        let error = stored.target_of(&"https://hooks.example/hush".into()).expect_err("no document").to_string();
        assert!(error.starts_with("the webhook's document /spillway/webhook is no JSON object; it takes "), "{error}");
        assert!(!error.contains("hush"), "{error}");
    }
}
