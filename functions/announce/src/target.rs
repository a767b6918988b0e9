//! The address in the webhook's document, and one POST to it.

use std::fmt;
use std::time::Duration;

use lambda_runtime::Error;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{Client, Proxy, StatusCode};
use secrecy::ExposeSecret as _;
use spillway_retry::Transient;

use crate::document::Document;
use crate::echo::Secrets;
use crate::form::Form;
use crate::http;
use crate::retry::LONGEST_PAUSE;

/// The document, with a client for it.
#[derive(Debug)]
pub(crate) struct Target {
    client: Client,
    document: Document,
}

/// Why a message was not taken. None of these says the URL, a header or the proxy's password.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PostError {
    #[error("the webhook gave no answer: {0}")]
    NoAnswer(String),
    #[error("the webhook is busy or broken: it answered {status}{said}")]
    Busy { status: StatusCode, said: Said, retry_after: Option<Duration> },
    #[error(
        "the webhook has another address now: it answered {0}, and a redirect is not followed; its document needs the new URL"
    )]
    Moved(StatusCode),
    #[error("the webhook does not accept the URL or the headers: it answered {status}{said}")]
    NotAccepted { status: StatusCode, said: Said },
    #[error("the webhook refused the message: it answered {status}{said}")]
    Refused { status: StatusCode, said: Said },
}

impl Transient for PostError {
    /// A webhook that asks for a longer pause than there is time for gets its message from the queue.
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

/// The text of an answer, as an error shows it. It may be empty.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Said(pub(crate) String);

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, ": {}", self.0) }
    }
}

impl Target {
    pub(crate) fn new(document: Document) -> Result<Self, Error> {
        let proxy = document.proxy.as_ref().map(|proxy| Proxy::all(proxy.expose_secret())).transpose();
        Ok(Self { client: http::client(proxy.map_err(reqwest::Error::without_url)?)?, document })
    }

    pub(crate) fn form(&self) -> &Form {
        &self.document.form
    }

    pub(crate) async fn post(&self, body: &str) -> Result<(), PostError> {
        let Document { url, headers, .. } = &self.document;
        let request = self.client.post(url.expose_secret()).headers(headers.clone()).body(body.to_owned());
        let response = request.send().await.map_err(|error| PostError::NoAnswer(http::why(error)))?;
        let status = response.status();
        // The body of a success is not read, however long it is.
        if status.is_success() {
            return Ok(());
        }
        if status.is_redirection() {
            return Err(PostError::Moved(status));
        }
        let retry_after = retry_after(response.headers());
        let secrets = Secrets::of(url.expose_secret(), headers);
        let said = Said(secrets.cut_out_of(&http::read(response, secrets.enough()).await));
        Err(match status.as_u16() {
            408 | 429 | 500.. => PostError::Busy { status, said, retry_after },
            401 | 403 | 404 | 407 | 410 => PostError::NotAccepted { status, said },
            _ => PostError::Refused { status, said },
        })
    }
}

/// The pause that a busy webhook asks for. A date is ignored: Slack and others give seconds.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}
