//! Calls to the API server: none without a timeout, and every failure told by what can be done.

pub(crate) mod budget;
pub(crate) mod list;
pub(crate) mod metadata;
pub(crate) mod pod;
pub(crate) mod watch;

use std::error::Error;
use std::time::Duration;

use kube::core::Status;
use spillway_eks::ConnectionFailure;
use spillway_retry::{self as retry, Transient};
use tokio::time::{Instant, timeout};

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
    #[error("cannot connect to the API server")]
    NoConnection(#[source] Box<kube::Error>),
    /// Who answered is not who EKS says, or EKS knows another certificate authority by now.
    #[error("the API server's certificate is not of the authority that EKS names")]
    Certificate(#[source] Box<kube::Error>),
    /// The connection broke, or what came was no answer.
    #[error("the API server's answer was lost")]
    NoAnswer(#[source] Box<dyn Error + Send + Sync>),
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

    /// Whether an admission webhook or policy said no.
    pub(crate) fn is_of_admission(&self) -> bool {
        matches!(self, Self::Refused(status) if is_of_admission(status))
    }
}

impl Transient for ApiError {
    fn is_transient(&self) -> bool {
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
                Some(ConnectionFailure::Certificate) => Self::Certificate(Box::new(error)),
                Some(ConnectionFailure::Network) => Self::NoConnection(Box::new(error)),
                None => Self::NoAnswer(Box::new(error)),
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

/// Makes calls again and again until they are answered or `end` is here; `retrying` hears of each failure in between.
pub(crate) async fn until<T>(
    end: Instant,
    calls: impl AsyncFnMut() -> Result<T, ApiError>,
    retrying: impl Fn(&ApiError),
) -> Result<T, ApiError> {
    retry::until(end, calls, retrying).await.map_err(|stopped| stopped.error_or(ApiError::TimeUp))
}

/// What came of one attempt to change an object as it was seen.
#[derive(Debug)]
pub(crate) enum Attempted<T> {
    /// It is changed, or is not to be.
    Settled(T),
    /// It had changed in between, so the API server refused.
    Contended(Box<Status>),
}

/// Looks and changes, and looks again if the object has changed in between: at most so many times.
pub(crate) async fn until_settled<T>(
    attempts: u32,
    mut attempt: impl AsyncFnMut() -> Result<Attempted<T>, ApiError>,
) -> Result<T, ApiError> {
    let mut refusal = None;
    for _ in 0..attempts {
        match attempt().await? {
            Attempted::Settled(done) => return Ok(done),
            Attempted::Contended(status) => refusal = Some(status),
        }
    }
    Err(ApiError::Contended(refusal.expect("there is at least one attempt, and each that goes on was refused")))
}

/// Whether an object of this kind does not exist. Something on the way that does not know the path
/// says 404 too, and nothing of the object.
pub(crate) fn is_missing(status: &Status, kind: &str) -> bool {
    status.code == 404 && status.details.as_ref().is_some_and(|details| details.kind == kind)
}

/// Whether the name is another object's by now. Other conflicts pass.
pub(crate) fn is_of_another_uid(status: &Status) -> bool {
    let said = |words| status.message.contains(words);
    status.code == 409 && (said("UID in the precondition") || said("UID in precondition"))
}

/// Whether the namespace is being deleted, and what is in it, so that nothing more is created there.
pub(crate) fn is_terminating(status: &Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    status.code == 403 && causes.into_iter().any(|cause| cause.reason == "NamespaceTerminating")
}

/// Whether a right is missing (apiserver, `responsewriters/errors.go`).
pub(crate) fn is_of_rbac(status: &Status) -> bool {
    status.message.contains("is forbidden: User \"")
}

/// Whether an admission webhook said no, with whichever code (apiserver, `webhook/errors/statuserror.go`).
pub(crate) fn is_of_webhook(status: &Status) -> bool {
    status.message.starts_with("admission webhook ") && status.message.contains(" denied the request")
}

/// Whether something that admits requests said no, a webhook or a policy: the codes are their own, the words are the API
/// server's (apiserver, `admission/errors.go`).
pub(crate) fn is_of_admission(status: &Status) -> bool {
    is_of_webhook(status) || status.message.contains(" is forbidden: ") && !is_of_rbac(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: u16) -> ApiError {
        ApiError::Refused(Box::new(Status::failure("why", "Reason").with_code(code)))
    }

    #[test]
    fn what_may_pass_is_told_from_what_somebody_has_to_fix() {
        assert!([401, 404, 409, 429, 500, 503].iter().all(|code| refused(*code).is_transient()));
        assert!([400, 403, 410, 422].iter().all(|code| !refused(*code).is_transient()));
        assert!(ApiError::TimeUp.is_transient());
    }

    #[test]
    fn who_admits_requests_is_told_from_a_missing_right_by_the_words() {
        let says = |message: &str| is_of_admission(&Status::failure(message, "Forbidden"));
        assert!(says("nodes \"n\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no"));
        assert!(says("admission webhook \"nodes.example.com\" denied the request: no"));
        assert!(!says("nodes \"n\" is forbidden: User \"spillway\" cannot patch resource \"nodes\""));
        assert!(!says("the server rejected our request due to an error in our request"), "a test of the patch");
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_is_never_answered_ends_with_its_time() {
        let end = Instant::now() + Duration::from_secs(10);
        let answer: Result<(), _> = until(end, async || std::future::pending().await, |_| ()).await;
        assert!(matches!(answer, Err(ApiError::TimeUp)), "{answer:?}");
        assert_eq!(Instant::now(), end);
    }
}
