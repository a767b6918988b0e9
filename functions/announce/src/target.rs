//! Posts a message to the webhook's URL.

use std::fmt;
use std::time::Duration;

use lambda_runtime::Error;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{Client, Proxy, StatusCode};
use secrecy::ExposeSecret as _;
use spillway_retry::Transient;

use crate::document::WebhookDocument;
use crate::echo::RequestSecrets;
use crate::form::Form;
use crate::http;
use crate::retry::LONGEST_PAUSE;

#[derive(Debug)]
pub(crate) struct Target {
    client: Client,
    document: WebhookDocument,
}

/// Reason why the webhook did not accept a message. Contains no secrets of the request.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PostError {
    #[error("the webhook gave no answer: {0}")]
    NoAnswer(String),
    #[error("the webhook is busy or broken: {status}{text}")]
    Busy { status: StatusCode, text: AnswerText, retry_after: Option<Duration> },
    #[error("the webhook redirects to another address: {0}; put the new URL into its document")]
    Moved(StatusCode),
    #[error("the webhook does not accept the URL or the headers: {status}{text}")]
    NotAccepted { status: StatusCode, text: AnswerText },
    #[error("the webhook refused the message: {status}{text}")]
    Refused { status: StatusCode, text: AnswerText },
}

impl Transient for PostError {
    /// Returns `true` if a retry within this invocation can succeed.
    fn is_transient(&self) -> bool {
        match self {
            Self::NoAnswer(_) => true,
            Self::Busy { retry_after, .. } => retry_after.is_none_or(|pause| pause <= LONGEST_PAUSE),
            Self::Moved(_) | Self::NotAccepted { .. } | Self::Refused { .. } => false,
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Busy { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}

/// Text of the webhook's answer without secrets. May be empty.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct AnswerText(pub(crate) String);

impl fmt::Display for AnswerText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, ": {}", self.0) }
    }
}

impl Target {
    pub(crate) fn new(document: WebhookDocument) -> Result<Self, Error> {
        let proxy = document.proxy.as_ref().map(|proxy| Proxy::all(proxy.expose_secret())).transpose();
        Ok(Self { client: http::client(proxy.map_err(reqwest::Error::without_url)?)?, document })
    }

    pub(crate) fn form(&self) -> &Form {
        &self.document.form
    }

    pub(crate) async fn post(&self, body: &str) -> Result<(), PostError> {
        let WebhookDocument { url, headers, .. } = &self.document;
        let request = self.client.post(url.expose_secret()).headers(headers.clone()).body(body.to_owned());
        let response = request.send().await.map_err(|error| PostError::NoAnswer(http::why(error)))?;
        let status = response.status();
        if status.is_success() {
            return Ok(());
        }
        if status.is_redirection() {
            return Err(PostError::Moved(status));
        }
        let retry_after = retry_after(response.headers());
        let secrets = RequestSecrets::of(url.expose_secret(), headers);
        let text = AnswerText(secrets.redact(&http::read(response, secrets.max_bytes_to_read()).await));
        Err(match status.as_u16() {
            408 | 429 | 500.. => PostError::Busy { status, text, retry_after },
            401 | 403 | 404 | 407 | 410 => PostError::NotAccepted { status, text },
            _ => PostError::Refused { status, text },
        })
    }
}

/// Returns the pause in the header `Retry-After`. `None` if the header is missing or has a date.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}
