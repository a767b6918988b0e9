//! Calls to the API server: none without a timeout, and every failure told by what can be done.

pub(crate) mod pod;
pub(crate) mod watch;

use std::time::Duration;

use kube::core::Status;
use spillway_eks::ConnectionFailure;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::aws;
use crate::invocation::retry::Backoff;

/// The API server may spend ten seconds on one eviction, retrying its own conflicts
/// (kubernetes/kubernetes#102361); a call that takes longer than this has been lost.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(15);

/// A call to the API server that failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApiError {
    /// It answered, and the answer is no.
    #[error("the API server answered {}", said(.0))]
    Refused(Box<Status>),
    /// It answered no each time, because something had changed in between.
    #[error("it changed each time: the API server answered {}", said(.0))]
    Contended(Box<Status>),
    /// No connection came about: what we know of the cluster may be out of date.
    #[error("cannot connect to the API server: {0}")]
    NoConnection(String),
    /// Who answered is not who EKS says, or EKS knows another certificate authority by now.
    #[error("the API server's certificate is not of the authority that EKS names: {0}")]
    Certificate(String),
    /// The connection broke, or what came was no answer.
    #[error("the API server's answer was lost: {0}")]
    NoAnswer(String),
    /// Nothing came in time.
    #[error("the API server did not answer within {} s", .0.as_secs())]
    Timeout(Duration),
    /// Nothing had come when there was no more time to wait.
    #[error("the API server did not answer before the time was up")]
    TimeUp,
}

/// What kube gives as the reason of an answer that is no Status, such as that of a busy API server or of something on
/// the way (kube-client 5.0, `client/mod.rs`). It says nothing that the rest does not.
pub(crate) const NO_STATUS: &str = "Failed to parse error data";

fn said(status: &Status) -> String {
    let Status { code, reason, message, .. } = status;
    let message = message.trim();
    if reason.is_empty() || reason == NO_STATUS {
        format!("{code}: {message}")
    } else {
        format!("{code} {reason}: {message}")
    }
}

impl ApiError {
    /// The HTTP status, if there was an answer.
    pub(crate) fn code(&self) -> Option<u16> {
        match self {
            Self::Refused(status) | Self::Contended(status) => Some(status.code),
            _ => None,
        }
    }

    /// Whether the same call may well succeed a moment later.
    pub(crate) fn is_transient(&self) -> bool {
        if matches!(self, Self::Contended(_)) {
            return true;
        }
        match self.code() {
            // 401: the token was too old or the authenticator was busy; the next request signs anew.
            // 404: of an object its caller has taken; of a path it came from something on the way.
            Some(code) => matches!(code, 401 | 404 | 408 | 409 | 429) || code >= 500,
            None => true,
        }
    }
}

impl From<kube::Error> for ApiError {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::Refused(status),
            error => match spillway_eks::connection_failure(&error) {
                Some(ConnectionFailure::Certificate) => Self::Certificate(aws::chain(&error)),
                Some(ConnectionFailure::Network) => Self::NoConnection(aws::chain(&error)),
                None => Self::NoAnswer(aws::chain(&error)),
            },
        }
    }
}

/// Makes a call, and gives it up after [`CALL_TIMEOUT`].
pub(crate) async fn call<T>(request: impl Future<Output = kube::Result<T>>) -> Result<T, ApiError> {
    match timeout(CALL_TIMEOUT, request).await {
        Ok(answer) => answer.map_err(ApiError::from),
        Err(_) => Err(ApiError::Timeout(CALL_TIMEOUT)),
    }
}

/// Makes calls again and again until they are answered or `end` is here; each failure in between
/// is told.
pub(crate) async fn until<T>(
    end: Instant,
    mut calls: impl AsyncFnMut() -> Result<T, ApiError>,
    tell: impl Fn(&ApiError),
) -> Result<T, ApiError> {
    let mut backoff = Backoff::new();
    let mut last_error = None;
    loop {
        let error = match timeout_at(end, calls()).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => error,
            Err(_) => return Err(last_error.unwrap_or(ApiError::TimeUp)),
        };
        if !error.is_transient() || timeout_at(end, sleep(backoff.next_pause())).await.is_err() {
            return Err(error);
        }
        tell(&error);
        last_error = Some(error);
    }
}

/// Whether an object of this kind does not exist. Something on the way that does not know the path
/// says 404 too, and nothing of the object.
pub(crate) fn is_missing(status: &Status, kind: &str) -> bool {
    status.code == 404 && status.details.as_ref().is_some_and(|details| details.kind == kind)
}

/// Whether the namespace is being deleted, and what is in it, so that nothing more is created there.
pub(crate) fn is_terminating(status: &Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    status.code == 403 && causes.into_iter().any(|cause| cause.reason == "NamespaceTerminating")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: u16) -> ApiError {
        ApiError::Refused(Box::new(Status::failure("why", "Reason").with_code(code)))
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_fails_for_a_while_is_made_again_until_it_is_answered() {
        let mut calls = 0;
        let answer = until(
            Instant::now() + Duration::from_secs(60),
            async || {
                calls += 1;
                if calls < 5 { Err(refused(503)) } else { Ok(calls) }
            },
            |_| (),
        );
        assert!(matches!(answer.await, Ok(5)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_is_never_answered_ends_with_the_window() {
        let end = Instant::now() + Duration::from_secs(10);
        let answer: Result<(), _> = until(end, async || std::future::pending().await, |_| ()).await;
        assert!(matches!(answer, Err(ApiError::TimeUp)), "{answer:?}");
        assert_eq!(Instant::now(), end);
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_wrong_before_the_time_was_up_is_told() {
        let mut calls = 0;
        let answer: Result<(), _> = until(
            Instant::now() + Duration::from_secs(10),
            async || {
                calls += 1;
                if calls > 1 { std::future::pending().await } else { Err(refused(503)) }
            },
            |_| (),
        )
        .await;
        assert_eq!(answer.err().and_then(|error| error.code()), Some(503));
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_is_refused_for_good_is_not_made_again() {
        let mut calls = 0;
        let answer: Result<(), _> = until(
            Instant::now() + Duration::from_secs(10),
            async || {
                calls += 1;
                Err(refused(403))
            },
            |_| (),
        )
        .await;
        assert_eq!((answer.err().and_then(|error| error.code()), calls), (Some(403), 1));
    }
}
