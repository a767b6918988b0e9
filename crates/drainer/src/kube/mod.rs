//! Calls the API server with timeouts and retries, and classifies failures.

pub mod list;
pub(crate) mod watch;

use std::error::Error;
use std::time::Duration;

use kube::core::Status;
use spillway_core::kube::status::{describe, is_missing, is_of_admission, is_of_unreachable_webhook};
use spillway_eks::ConnectionFailure;
use spillway_retry::{self as retry, Transient};
use tokio::time::{Instant, timeout};

/// Timeout of a call to the API server, except evictions and deletions (`drain/evict.rs`).
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(15);

#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    #[error("the API server answered {}", describe(.0))]
    Refused(Box<Status>),
    /// The patch failed, because the object had changed since the read.
    #[error("the object changed during each attempt: the API server answered {}", describe(.0))]
    Contended(Box<Status>),
    /// The connection failed, for example because the cached endpoint is out of date.
    #[error("cannot connect to the API server")]
    NoConnection(#[source] Box<kube::Error>),
    /// The certificate is invalid: another server answered, or the certificate authority has changed.
    #[error("the API server's certificate is not of the authority that EKS names")]
    Certificate(#[source] Box<kube::Error>),
    /// The connection broke, or the answer was unreadable.
    #[error("the API server's answer was lost")]
    NoAnswer(#[source] Box<dyn Error + Send + Sync>),
    #[error("the API server did not answer within {} s", .0.as_secs())]
    Timeout(Duration),
    #[error("the API server did not answer before the time was up")]
    TimeUp,
}

impl ApiError {
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Refused(status) | Self::Contended(status) => Some(status.code),
            _ => None,
        }
    }

    /// Returns `true` if the API server refused a request for `resource`, a plural name such as `pods`.
    pub(crate) fn is_of_resource(&self, resource: &str) -> bool {
        matches!(self, Self::Refused(status) if status.details.as_ref().is_some_and(|details| details.kind == resource))
    }

    pub(crate) fn is_of_admission(&self) -> bool {
        matches!(self, Self::Refused(status) if is_of_admission(status))
    }

    /// Returns `true` if the API server could not reach a required admission webhook.
    pub(crate) fn is_of_unreachable_webhook(&self) -> bool {
        matches!(self, Self::Refused(status) if is_of_unreachable_webhook(status))
    }
}

impl Transient for ApiError {
    fn is_transient(&self) -> bool {
        if matches!(self, Self::Contended(_)) {
            return true;
        }
        match self.code() {
            // 401: the token was too old or the authenticator busy; the next request has a new token.
            // 404: callers handle a missing object; a missing path is the answer of a proxy.
            // 410: the resource version of a paged list was compacted; the next attempt begins with the first page.
            Some(code) => matches!(code, 401 | 404 | 408 | 409 | 410 | 429) || code >= 500,
            None => true,
        }
    }
}

impl From<kube::Error> for ApiError {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::Refused(status),
            error => match spillway_eks::connection_failure(&error) {
                Some(ConnectionFailure::Certificate) => Self::Certificate(Box::new(error)),
                Some(ConnectionFailure::Network) => Self::NoConnection(Box::new(error)),
                None => Self::NoAnswer(Box::new(error)),
            },
        }
    }
}

pub async fn call<T>(request: impl Future<Output = kube::Result<T>>) -> Result<T, ApiError> {
    call_within(CALL_TIMEOUT, request).await
}

async fn call_within<T>(patience: Duration, request: impl Future<Output = kube::Result<T>>) -> Result<T, ApiError> {
    match timeout(patience, request).await {
        Ok(answer) => answer.map_err(ApiError::from),
        Err(_) => Err(ApiError::Timeout(patience)),
    }
}

/// Repeats `calls` after transient failures, until `end`. `retrying` is called with each failure that is retried.
pub async fn until<T>(
    end: Instant,
    calls: impl AsyncFnMut() -> Result<T, ApiError>,
    retrying: impl Fn(&ApiError),
) -> Result<T, ApiError> {
    retry::until(end, calls, retrying).await.map_err(|stopped| stopped.error_or(ApiError::TimeUp))
}

/// Converts a 404 about an object of this `kind` to `None`. Any other 404, for example of a proxy, remains an error.
pub(crate) fn if_found<T>(answer: Result<T, ApiError>, kind: &str) -> Result<Option<T>, ApiError> {
    match answer {
        Ok(found) => Ok(Some(found)),
        Err(ApiError::Refused(status)) if is_missing(&status, kind) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Error type that can report a concurrent change of the object.
pub(crate) trait Contention {
    fn is_contention(&self) -> bool;
}

impl Contention for ApiError {
    fn is_contention(&self) -> bool {
        matches!(self, Self::Contended(_))
    }
}

/// Repeats `attempt` while it fails because of concurrent changes, at most `attempts` times.
pub(crate) async fn until_settled<T, E: Contention>(
    attempts: u32,
    mut attempt: impl AsyncFnMut() -> Result<T, E>,
) -> Result<T, E> {
    for _ in 1..attempts {
        match attempt().await {
            Err(error) if error.is_contention() => {}
            settled => return settled,
        }
    }
    attempt().await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: u16) -> ApiError {
        ApiError::Refused(Box::new(Status::failure("why", "Reason").with_code(code)))
    }

    #[test]
    fn conflicts_busy_and_lost_answers_are_transient() {
        assert!([401, 404, 409, 410, 429, 500, 503].iter().all(|code| refused(*code).is_transient()));
        assert!([400, 403, 422].iter().all(|code| !refused(*code).is_transient()));
        assert!(ApiError::TimeUp.is_transient());
    }

    #[tokio::test(start_paused = true)]
    async fn hanging_call_ends_with_its_time() {
        let end = Instant::now() + Duration::from_secs(10);
        let answer: Result<(), _> = until(end, async || std::future::pending().await, |_| ()).await;
        assert!(matches!(answer, Err(ApiError::TimeUp)), "{answer:?}");
        assert_eq!(Instant::now(), end);
    }
}
