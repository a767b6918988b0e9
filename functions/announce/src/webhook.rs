//! The webhook: one POST for each message.

use std::time::Duration;

use reqwest::StatusCode;

use crate::group::Message;
use crate::retry::{MayPass, retried};
use crate::stored::{Stored, StoredError};

/// Where messages are posted: what its document says.
#[derive(Debug)]
pub(crate) struct Webhook {
    stored: Stored,
}

/// Why a message was not taken. None of these says the URL, a header or the proxy's password.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WebhookError {
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
    #[error("{0}")]
    Document(#[from] StoredError),
}

/// What the answer said, if anything.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Said(String);

impl Said {
    pub(crate) fn new(said: String) -> Self {
        Self(said)
    }
}

impl std::fmt::Display for Said {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, ": {}", self.0) }
    }
}

impl MayPass for WebhookError {
    fn may_pass(&self) -> bool {
        match self {
            Self::NoAnswer(_) | Self::Busy { .. } => true,
            Self::Moved(_) | Self::NotAccepted { .. } | Self::Refused { .. } | Self::Document(_) => false,
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
    pub(crate) fn new(stored: Stored) -> Self {
        Self { stored }
    }

    /// Posts a message. A document that is not accepted may have been changed: it is read again, once.
    pub(crate) async fn send(&self, message: &Message<'_>) -> Result<(), WebhookError> {
        let target = self.stored.target().await?;
        let body = target.form().body(message);
        match retried(|| target.post(&body)).await {
            Err(error @ WebhookError::NotAccepted { .. }) => match self.stored.changed(&target).await? {
                Some(new) => {
                    let body = new.form().body(message);
                    retried(|| new.post(&body)).await
                }
                None => Err(error),
            },
            answer => answer,
        }
    }
}

#[cfg(test)]
mod tests;
