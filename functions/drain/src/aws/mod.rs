//! What went wrong with a call to AWS, told by what the caller can do about it.

pub(crate) mod events;
pub(crate) mod instance;
pub(crate) mod lifecycle;
pub(crate) mod managed_tag;

use std::fmt;

use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_runtime_api::http::Response;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use tokio::time::{Instant, sleep, timeout_at};

use crate::invocation::retry::Backoff;

/// A call to AWS that failed for good, after the SDK's own attempts.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) struct CallError {
    /// The action, as IAM writes it: `ec2:DescribeInstances`.
    pub(crate) action: &'static str,
    /// What can be done about it.
    pub(crate) kind: CallErrorKind,
    /// What AWS said, or what became of the connection.
    pub(crate) detail: String,
}

/// The ways in which a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallErrorKind {
    /// The function's role lacks the permission.
    Denied,
    /// AWS asks us to slow down.
    Throttled,
    /// No answer: DNS, TCP, TLS, a timeout, or something that is none.
    Unreachable,
    /// AWS has a fault of its own (5xx).
    Broken,
    /// AWS understood and refused.
    Refused,
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { action, kind, detail } = self;
        match kind {
            CallErrorKind::Denied => write!(f, "{action} is denied: the function's role lacks {action}: {detail}"),
            CallErrorKind::Throttled => write!(f, "{action} is throttled: {detail}"),
            CallErrorKind::Unreachable => write!(f, "{action} got no answer: {detail}"),
            CallErrorKind::Broken => write!(f, "{action} fails at AWS' end: {detail}"),
            CallErrorKind::Refused => write!(f, "{action} is refused: {detail}"),
        }
    }
}

impl CallError {
    /// Sorts the SDK's error.
    pub(crate) fn new<E>(action: &'static str, error: &SdkError<E, Response>) -> Self
    where
        E: std::error::Error + ProvideErrorMetadata + 'static,
    {
        let Some(answer) = error.as_service_error() else {
            return Self { action, kind: CallErrorKind::Unreachable, detail: chain(error) };
        };
        let status = error.raw_response().map(|response| response.status().as_u16());
        if status.is_some_and(|status| (200..300).contains(&status)) {
            let detail = format!("what came cannot be read: {}", chain(error));
            return Self { action, kind: CallErrorKind::Unreachable, detail };
        }
        let code = answer.code().unwrap_or("no error code");
        let message = answer.message().unwrap_or("no message");
        Self::answered(action, code, message, status)
    }

    /// Sorts an answer by its code and, if it came with one of its own, its status.
    pub(crate) fn answered(action: &'static str, code: &str, message: &str, status: Option<u16>) -> Self {
        Self { action, kind: kind_of(code, status.unwrap_or_default()), detail: format!("{code}: {message}") }
    }

    /// Whether the same call may well succeed a moment later.
    pub(crate) fn is_transient(&self) -> bool {
        match self.kind {
            CallErrorKind::Throttled | CallErrorKind::Unreachable | CallErrorKind::Broken => true,
            CallErrorKind::Denied | CallErrorKind::Refused => false,
        }
    }
}

/// Makes a call again and again until it is answered or `end` is here: Lambda's own retry comes
/// after a minute, too late for a spot notice.
pub(crate) async fn until<T, F>(action: &'static str, end: Instant, mut call: impl FnMut() -> F) -> Result<T, CallError>
where
    F: Future<Output = Result<T, CallError>>,
{
    let mut backoff = Backoff::new();
    let mut last_error = None;
    loop {
        let error = match timeout_at(end, call()).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => error,
            Err(_) => {
                let detail = "the time was up".to_owned();
                return Err(last_error.unwrap_or(CallError { action, kind: CallErrorKind::Unreachable, detail }));
            }
        };
        if !error.is_transient() || timeout_at(end, sleep(backoff.next_pause())).await.is_err() {
            return Err(error);
        }
        tracing::warn!(error = %error, "{action} failed; trying again");
        last_error = Some(error);
    }
}

fn kind_of(code: &str, status: u16) -> CallErrorKind {
    match code {
        "UnauthorizedOperation" | "AccessDenied" | "AccessDeniedException" | "AuthFailure" => CallErrorKind::Denied,
        "Throttling" | "ThrottlingException" | "RequestLimitExceeded" | "TooManyRequestsException" => {
            CallErrorKind::Throttled
        }
        // A conflict is with another change to the same thing, which ends.
        "InternalFailure" | "InternalException" | "ConflictException" => CallErrorKind::Broken,
        _ if status >= 500 => CallErrorKind::Broken,
        _ => CallErrorKind::Refused,
    }
}

/// An error and all its causes in one line, each said once.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn error(kind: CallErrorKind) -> CallError {
        CallError { action: "ec2:DescribeInstances", kind, detail: "Code: why".to_owned() }
    }

    #[test]
    fn a_denied_call_names_the_permission_that_is_missing() {
        assert_eq!(
            error(kind_of("UnauthorizedOperation", 403)).to_string(),
            "ec2:DescribeInstances is denied: the function's role lacks ec2:DescribeInstances: Code: why"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_is_throttled_is_made_again_until_it_is_answered() {
        let mut calls = 0;
        let answer = until("ec2:DescribeInstances", Instant::now() + Duration::from_secs(60), || {
            calls += 1;
            std::future::ready(if calls < 5 { Err(error(CallErrorKind::Throttled)) } else { Ok(calls) })
        });
        assert_eq!(answer.await, Ok(5));
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_is_denied_is_not_made_again() {
        let mut calls = 0;
        let answer: Result<(), _> = until("ec2:DescribeInstances", Instant::now() + Duration::from_secs(60), || {
            calls += 1;
            std::future::ready(Err(error(CallErrorKind::Denied)))
        })
        .await;
        assert_eq!((answer, calls), (Err(error(CallErrorKind::Denied)), 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_keeps_failing_ends_with_the_window() {
        let end = Instant::now() + Duration::from_secs(60);
        let answer: Result<(), _> =
            until("ec2:DescribeInstances", end, || std::future::ready(Err(error(CallErrorKind::Broken)))).await;
        assert_eq!(answer, Err(error(CallErrorKind::Broken)));
        assert_eq!(Instant::now(), end);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_hangs_is_given_up_when_the_window_ends() {
        let end = Instant::now() + Duration::from_secs(5);
        let answer: Result<(), _> = until("ec2:DescribeInstances", end, std::future::pending).await;
        assert_eq!(answer.map_err(|error| error.kind), Err(CallErrorKind::Unreachable));
        assert_eq!(Instant::now(), end);
    }
}
