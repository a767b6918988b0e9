//! What went wrong with a call to AWS, told by what the caller can do about it.

use std::fmt;
use std::time::Duration;

use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_runtime_api::http::Response;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use aws_smithy_types::timeout::TimeoutConfig;

/// No call may hang: a healthy one takes milliseconds, and the SDK makes up to three attempts.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(5);
const CALL_TIMEOUT: Duration = Duration::from_secs(12);

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
    /// No answer: DNS, TCP, TLS or a timeout.
    Unreachable,
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
        let code = answer.code().unwrap_or("no error code");
        let message = answer.message().unwrap_or("no message");
        Self { action, kind: kind_of(code), detail: format!("{code}: {message}") }
    }
}

fn kind_of(code: &str) -> CallErrorKind {
    match code {
        "UnauthorizedOperation" | "AccessDenied" | "AccessDeniedException" | "AuthFailure" => CallErrorKind::Denied,
        "Throttling" | "ThrottlingException" | "RequestLimitExceeded" | "TooManyRequestsException" => {
            CallErrorKind::Throttled
        }
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

/// The timeouts of every call.
pub(crate) fn timeouts() -> TimeoutConfig {
    TimeoutConfig::builder().operation_attempt_timeout(ATTEMPT_TIMEOUT).operation_timeout(CALL_TIMEOUT).build()
}
