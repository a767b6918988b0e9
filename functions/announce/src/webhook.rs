//! Posts each message to the webhook.

use reqwest::StatusCode;
use tokio::time::Instant;

use crate::form::Form;
use crate::group::Message;
use crate::retry::{TIME_UP, retried};
use crate::stored::{Stored, StoredError};
use crate::target::{PostError, Target};

#[derive(Debug)]
pub(crate) struct Webhook {
    stored: Stored,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum WebhookError {
    #[error(transparent)]
    Post(#[from] PostError),
    /// The webhook refused a templated message about several notices. The message may be too long.
    #[error(transparent)]
    TooLarge(PostError),
    #[error(transparent)]
    Document(#[from] StoredError),
}

impl Webhook {
    pub(crate) fn new(stored: Stored) -> Self {
        Self { stored }
    }

    /// Posts a message. If the webhook refuses the URL or a header, reads the document again, and retries if it has changed.
    pub(crate) async fn send(&self, message: &Message<'_>, end: Instant) -> Result<(), WebhookError> {
        let target = self.stored.target(end).await?;
        match post(&target, message, end).await {
            // Slack refuses texts of more than 3,000 characters as `invalid_blocks`.
            Err(error @ PostError::Refused { status: StatusCode::BAD_REQUEST | StatusCode::PAYLOAD_TOO_LARGE, .. })
                if message.events.len() > 1 && matches!(target.form(), Form::Template(_)) =>
            {
                Err(WebhookError::TooLarge(error))
            }
            Err(error @ PostError::NotAccepted { .. }) => match self.stored.changed(&target, end).await? {
                Some(new) => Ok(post(&new, message, end).await?),
                None => Err(error.into()),
            },
            answer => Ok(answer?),
        }
    }
}

async fn post(target: &Target, message: &Message<'_>, end: Instant) -> Result<(), PostError> {
    let body = target.form().body(message);
    let posted = retried(end, async || target.post(&body).await).await;
    posted.map_err(|stopped| stopped.error_or(PostError::NoAnswer(TIME_UP.to_owned())))
}

#[cfg(test)]
mod tests;
