//! Reads the webhook's document from Parameter Store or Secrets Manager, and caches the document.

use std::sync::Arc;
use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};
use spillway_aws_call::{Call, CallError, Caller, Service};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::document::{DocumentError, WebhookDocument};
use crate::retry;
use crate::settings::StoredName;
use crate::target::Target;

#[cfg(test)]
use crate::test_support;

/// Maximum age of a cached document.
const FRESH: Duration = Duration::from_mins(5);

#[derive(Debug)]
pub(crate) struct Stored {
    name: StoredName,
    aws: Caller,
    cached: Mutex<Option<Cached>>,
}

#[derive(Debug)]
struct Cached {
    text: SecretString,
    target: Arc<Target>,
    at: Instant,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum StoredError {
    #[error("cannot read the webhook's document {0}")]
    Aws(StoredName, #[source] CallError),
    #[error("the webhook's document {0} {1}")]
    Wrong(StoredName, DocumentError),
    #[error("the webhook's document {0} makes no HTTP client: {1}")]
    Client(StoredName, String),
}

impl Stored {
    pub(crate) fn new(name: StoredName, aws: Caller) -> Self {
        Self { name, aws, cached: Mutex::new(None) }
    }

    /// Returns the HTTP target of the webhook. Reads the document if the cached document is too old.
    pub(crate) async fn target(&self, end: Instant) -> Result<Arc<Target>, StoredError> {
        let mut cached = self.cached.lock().await;
        match cached.as_ref().filter(|cached| cached.at.elapsed() < FRESH) {
            Some(cached) => Ok(Arc::clone(&cached.target)),
            None => self.read_into(&mut cached, end).await,
        }
    }

    /// Reads the document again. Returns the new HTTP target, or `None` if the document is unchanged.
    pub(crate) async fn changed(&self, old: &Arc<Target>, end: Instant) -> Result<Option<Arc<Target>>, StoredError> {
        let new = self.read_into(&mut *self.cached.lock().await, end).await?;
        Ok((!Arc::ptr_eq(old, &new)).then_some(new))
    }

    /// Reads the document into the cache. If the document is unchanged, keeps the HTTP client.
    async fn read_into(&self, cached: &mut Option<Cached>, end: Instant) -> Result<Arc<Target>, StoredError> {
        let text = self.fetch(end).await.map_err(|error| StoredError::Aws(self.name.clone(), error))?;
        let same = cached.as_ref().filter(|cached| cached.text.expose_secret() == text.expose_secret());
        let target = match same {
            Some(cached) => Arc::clone(&cached.target),
            None => Arc::new(self.target_of(&text)?),
        };
        *cached = Some(Cached { text, target: Arc::clone(&target), at: Instant::now() });
        Ok(target)
    }

    fn target_of(&self, text: &SecretString) -> Result<Target, StoredError> {
        let document = WebhookDocument::parse(text.expose_secret());
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

    #[cfg(test)]
    pub(crate) fn holding(document: WebhookDocument) -> Self {
        let target = Arc::new(Target::new(document).expect("a client"));
        let cached = Cached { text: SecretString::default(), target, at: Instant::now() };
        let name = StoredName::Parameter("/spillway/webhook".to_owned());
        Self { name, aws: test_support::no_aws(), cached: Mutex::new(Some(cached)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn error_names_the_document_without_its_secrets() {
        let stored = Stored::new(StoredName::Parameter("/spillway/webhook".to_owned()), test_support::no_aws());
        let error = stored.target_of(&"https://hooks.example/hush".into()).expect_err("no document").to_string();
        assert!(
            error.starts_with("the webhook's document /spillway/webhook is not a JSON object; expected "),
            "{error}"
        );
        assert!(!error.contains("hush"), "{error}");
    }
}
