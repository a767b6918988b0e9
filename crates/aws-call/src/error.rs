//! Errors of AWS calls, classified by cause.

use std::error::Error;
use std::fmt;

use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_runtime_api::http::Response;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use spillway_retry::Transient;

/// Error of an AWS call through an SDK client or through [`Caller`](crate::Caller).
#[derive(Debug)]
pub struct CallError {
    /// IAM action, such as `ec2:DescribeInstances`.
    pub action: &'static str,
    pub kind: CallErrorKind,
    /// Error code and message from AWS. Empty if AWS sent no readable response.
    answer: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallErrorKind {
    Denied,
    Throttled,
    /// No readable response: the network failed, a timeout expired, or the body was unexpected.
    Unreachable,
    /// Internal error of the AWS service (5xx), or a conflict with another change of the resource.
    Broken,
    Refused,
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let action = self.action;
        match self.kind {
            CallErrorKind::Denied => {
                write!(f, "{action} is denied: the function's role lacks {action}, or a policy takes it away")
            }
            CallErrorKind::Throttled => write!(f, "{action} is throttled"),
            CallErrorKind::Unreachable => write!(f, "{action} got no answer"),
            CallErrorKind::Broken => write!(f, "{action} fails at AWS' end"),
            CallErrorKind::Refused => write!(f, "{action} is refused"),
        }?;
        if self.answer.is_empty() { Ok(()) } else { write!(f, ": {}", self.answer) }
    }
}

impl Error for CallError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}

impl Transient for CallError {
    fn is_transient(&self) -> bool {
        match self.kind {
            CallErrorKind::Throttled | CallErrorKind::Unreachable | CallErrorKind::Broken => true,
            CallErrorKind::Denied | CallErrorKind::Refused => false,
        }
    }

    fn is_throttled(&self) -> bool {
        self.kind == CallErrorKind::Throttled
    }
}

impl CallError {
    pub fn new<E>(action: &'static str, error: SdkError<E, Response>) -> Self
    where
        E: Error + ProvideErrorMetadata + Send + Sync + 'static,
    {
        let status = error.raw_response().map(|response| response.status().as_u16());
        let is_read = !status.is_some_and(|status| (200..300).contains(&status));
        match error.as_service_error().filter(|_| is_read) {
            Some(answer) => {
                let code = answer.code().unwrap_or("no error code");
                Self::answered(action, code, answer.message().unwrap_or("no message"), status)
            }
            // AWS did not answer, or a proxy answered with an unreadable success.
            None => Self::unanswered(action, error),
        }
    }

    #[must_use]
    pub fn answer(&self) -> &str {
        &self.answer
    }

    #[must_use]
    pub fn has_code(&self, code: &str) -> bool {
        self.answer.strip_prefix(code).is_some_and(|rest| rest.starts_with(':'))
    }

    /// Creates an error from an AWS response. `code` and `status` determine the kind.
    #[must_use]
    pub fn answered(action: &'static str, code: &str, message: &str, status: Option<u16>) -> Self {
        let kind = kind_of(code, status.unwrap_or_default());
        Self { action, kind, answer: format!("{code}: {message}"), source: None }
    }

    pub fn unanswered(action: &'static str, why: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { action, kind: CallErrorKind::Unreachable, answer: String::new(), source: Some(why.into()) }
    }
}

fn kind_of(code: &str, status: u16) -> CallErrorKind {
    match code {
        "UnauthorizedOperation" | "AccessDenied" | "AccessDeniedException" | "AuthFailure" => CallErrorKind::Denied,
        "Throttled"
        | "Throttling"
        | "ThrottlingException"
        | "RequestLimitExceeded"
        | "SlowDown"
        | "RequestThrottled"
        | "TooManyRequestsException" => CallErrorKind::Throttled,
        // A conflict is transient: it lasts until another change of the resource ends.
        "InternalFailure" | "InternalException" | "ConflictException" | "ResourceConflictException" => {
            CallErrorKind::Broken
        }
        _ if status >= 500 => CallErrorKind::Broken,
        _ => CallErrorKind::Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throttles_conflicts_and_5xx_are_transient() {
        let transient =
            |code, status| CallError::answered("ec2:DescribeInstances", code, "why", Some(status)).is_transient();
        assert!(
            transient("RequestLimitExceeded", 503) && transient("ConflictException", 409) && transient("What", 500)
        );
        assert!(!transient("AccessDenied", 403) && !transient("ValidationError", 400));
    }
}
