//! Calls to the API server: none without a timeout, and every failure told by what can be done.

use std::time::Duration;

use kube::core::Status;

use crate::aws;

/// The API server may spend ten seconds on one eviction, retrying its own conflicts
/// (kubernetes/kubernetes#102361); a call that takes longer than this has been lost.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(15);

/// A call to the API server that failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApiError {
    /// It answered, and the answer is no.
    #[error("the API server answered {} {}: {}", .0.code, .0.reason, .0.message)]
    Refused(Box<Status>),
    /// No connection came about: what we know of the cluster may be out of date.
    #[error("cannot connect to the API server: {0}")]
    NoConnection(String),
    /// The connection broke, or what came was no answer.
    #[error("the API server's answer was lost: {0}")]
    NoAnswer(String),
    /// Nothing came in time.
    #[error("the API server did not answer within {} s", .0.as_secs())]
    Timeout(Duration),
}

impl ApiError {
    /// The HTTP status, if there was an answer.
    pub(crate) fn code(&self) -> Option<u16> {
        match self {
            Self::Refused(status) => Some(status.code),
            _ => None,
        }
    }

    /// Whether the same call may well succeed a moment later.
    pub(crate) fn is_transient(&self) -> bool {
        match self.code() {
            // 401: the token was too old or the authenticator was busy; the next request signs anew.
            Some(code) => matches!(code, 401 | 408 | 409 | 429) || code >= 500,
            None => true,
        }
    }
}

impl From<kube::Error> for ApiError {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::Refused(status),
            error if spillway_eks::is_connection_failure(&error) => Self::NoConnection(aws::chain(&error)),
            error => Self::NoAnswer(aws::chain(&error)),
        }
    }
}

/// Makes a call, and gives it up after [`CALL_TIMEOUT`].
pub(crate) async fn call<T>(request: impl Future<Output = kube::Result<T>>) -> Result<T, ApiError> {
    match tokio::time::timeout(CALL_TIMEOUT, request).await {
        Ok(answer) => answer.map_err(ApiError::from),
        Err(_) => Err(ApiError::Timeout(CALL_TIMEOUT)),
    }
}
