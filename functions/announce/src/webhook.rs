//! The webhook: one POST for each message.

use std::time::Duration;

use lambda_runtime::Error;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{Client, Proxy, StatusCode};
use secrecy::{ExposeSecret as _, SecretString};

use crate::aws::Aws;
use crate::echo::Secrets;
use crate::form::Form;
use crate::group::Message;
use crate::http;
use crate::retry::{MayPass, retried};
use crate::secret::{SecretError, Stored};
use crate::settings;

/// Where messages are posted.
#[derive(Debug)]
pub(crate) struct Webhook {
    client: Client,
    address: Address,
    headers: HeaderMap,
    form: Form,
}

/// Where the URL is.
#[derive(Debug)]
enum Address {
    Given(SecretString),
    Stored(Stored),
}

/// Why a message was not taken. None of these says the URL, a header or the proxy's password.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WebhookError {
    #[error("the webhook gave no answer: {0}")]
    NoAnswer(String),
    #[error("the webhook is busy or broken: it answered {status}{said}")]
    Busy { status: StatusCode, said: Said, retry_after: Option<Duration> },
    #[error("the webhook has another address now: it answered {0}, and a redirect is not followed; set the new URL")]
    Moved(StatusCode),
    #[error("the webhook does not accept the URL or the headers: it answered {status}{said}")]
    NotAccepted { status: StatusCode, said: Said },
    #[error("the webhook refused the message: it answered {status}{said}")]
    Refused { status: StatusCode, said: Said },
    #[error("{0}")]
    Address(#[from] SecretError),
}

/// What the answer said, if anything.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Said(String);

impl std::fmt::Display for Said {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, ": {}", self.0) }
    }
}

impl MayPass for WebhookError {
    fn may_pass(&self) -> bool {
        match self {
            Self::NoAnswer(_) | Self::Busy { .. } => true,
            Self::Moved(_) | Self::NotAccepted { .. } | Self::Refused { .. } | Self::Address(_) => false,
        }
    }

    fn asks_for(&self) -> Option<Duration> {
        match self {
            Self::Busy { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}

impl Webhook {
    /// The webhook of these settings; `aws` is where its URL is read, if it is kept there.
    pub(crate) fn new(settings: settings::Webhook, aws: &Aws) -> Result<Self, Error> {
        let settings::Webhook { address, headers, proxy, form } = settings;
        let proxy = proxy.map(|proxy| Proxy::all(proxy.expose_secret())).transpose();
        Ok(Self {
            client: http::client(proxy.map_err(reqwest::Error::without_url)?)?,
            address: match address {
                settings::Address::Given(url) => Address::Given(url),
                settings::Address::Stored(name) => Address::Stored(Stored::new(name, aws.clone())),
            },
            headers,
            form,
        })
    }

    /// Posts a message. A stored URL that is not accepted may have been changed: it is read again, once.
    pub(crate) async fn send(&self, message: &Message<'_>) -> Result<(), WebhookError> {
        let body = self.form.body(message);
        let url = self.address.url().await?;
        match retried(|| self.post(&url, &body)).await {
            Err(error @ WebhookError::NotAccepted { .. }) => match self.address.changed(&url).await? {
                Some(new) => retried(|| self.post(&new, &body)).await,
                None => Err(error),
            },
            answer => answer,
        }
    }

    async fn post(&self, url: &SecretString, body: &str) -> Result<(), WebhookError> {
        let request = self.client.post(url.expose_secret()).headers(self.headers.clone()).body(body.to_owned());
        let response = request.send().await.map_err(|error| WebhookError::NoAnswer(http::why(error)))?;
        let status = response.status();
        // What is said with a success is not read, however long it is.
        if status.is_success() {
            return Ok(());
        }
        if status.is_redirection() {
            return Err(WebhookError::Moved(status));
        }
        let retry_after = retry_after(response.headers());
        let secrets = Secrets::of(url.expose_secret(), &self.headers);
        let said = Said(secrets.cut_out_of(&http::read(response, secrets.enough()).await));
        Err(match status.as_u16() {
            408 | 429 | 500.. => WebhookError::Busy { status, said, retry_after },
            401 | 403 | 404 | 407 | 410 => WebhookError::NotAccepted { status, said },
            _ => WebhookError::Refused { status, said },
        })
    }
}

/// How long a busy webhook asks to be left alone. A date is not heeded: Slack and its like give seconds.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}

impl Address {
    async fn url(&self) -> Result<SecretString, SecretError> {
        match self {
            Self::Given(url) => Ok(url.clone()),
            Self::Stored(stored) => stored.url().await,
        }
    }

    /// The URL that took the place of the old one, if any did.
    async fn changed(&self, old: &SecretString) -> Result<Option<SecretString>, SecretError> {
        match self {
            Self::Given(_) => Ok(None),
            Self::Stored(stored) => stored.changed(old).await,
        }
    }
}

#[cfg(test)]
mod tests;
