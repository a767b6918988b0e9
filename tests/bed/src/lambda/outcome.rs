//! Outcomes of invocations, and Lambda's texts of errors.

use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::error::BedError;

/// Outcome of one invocation.
#[derive(Debug, Clone)]
pub struct Outcome {
    pub result: Result<Value, InvocationError>,
    /// Lines of stdout and stderr, from the event (or the cold start) to the next poll.
    pub logs: Vec<String>,
    /// Time at which the function got the event.
    pub started: Timestamp,
    /// From the event to the answer, or to the end of the process.
    pub duration: Duration,
    pub request_id: String,
    /// Present after a cold start.
    pub init: Option<Init>,
}

const REFUSED: &str = "TooManyRequestsException";

impl Outcome {
    /// Lambda's answer if no execution is free.
    pub(super) fn refused(request_id: &str) -> Self {
        Self {
            result: Err(InvocationError::new(REFUSED, "Rate Exceeded.".to_owned())),
            logs: Vec::new(),
            started: Timestamp::now(),
            duration: Duration::ZERO,
            request_id: request_id.to_owned(),
            init: None,
        }
    }

    pub(super) fn is_refused(&self) -> bool {
        self.result.as_ref().is_err_and(|error| error.error_type == REFUSED)
    }

    /// Returns an error unless the function answers that it has drained the node.
    pub fn drained(&self) -> Result<(), BedError> {
        match &self.result {
            Ok(answer) if answer["ending"] == "drained" => Ok(()),
            Ok(answer) => Err(BedError::NotDrained { answer: answer.to_string() }),
            Err(error) => Err(BedError::NotDrained { answer: error.to_string() }),
        }
    }
}

/// Start of a process.
#[derive(Debug, Clone, Copy)]
pub struct Init {
    /// Time at which the binary was executed.
    pub started: Timestamp,
    pub first_poll: Timestamp,
    /// From `started` to `first_poll`, by a clock that does not jump.
    pub duration: Duration,
}

/// A failed invocation, as its caller sees it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{error_type}: {message}")]
pub struct InvocationError {
    pub error_type: String,
    pub message: String,
    /// The whole report, as a failure record keeps it.
    pub payload: Value,
}

impl InvocationError {
    pub(super) fn new(error_type: &str, message: String) -> Self {
        let payload = json!({"errorType": error_type, "errorMessage": message});
        Self { error_type: error_type.to_owned(), message, payload }
    }

    /// The function's own report. A missing type comes from the header, else from Lambda.
    pub(super) fn reported(body: &[u8], header: Option<&str>) -> Self {
        let payload: Value =
            serde_json::from_slice(body).unwrap_or_else(|_| Value::String(String::from_utf8_lossy(body).into_owned()));
        let text = |key: &str| payload.get(key).and_then(Value::as_str);
        let error_type = text("errorType").or(header).unwrap_or("Unhandled").to_owned();
        let message = text("errorMessage").unwrap_or_default().to_owned();
        Self { error_type, message, payload }
    }

    pub(super) fn timed_out(request_id: &str, limit: Duration) -> Self {
        let message = format!("RequestId: {request_id} Error: Task timed out after {:.2} seconds", limit.as_secs_f64());
        Self::new("Sandbox.Timedout", message)
    }

    pub(super) fn exited(request_id: &str, status: ExitStatus) -> Self {
        let reason = match (status.code(), status.signal()) {
            (Some(0), _) => "Runtime exited without providing a reason".to_owned(),
            (Some(code), _) => format!("Runtime exited with error: exit status {code}"),
            (None, signal) => {
                let name = match signal {
                    Some(4) => "illegal instruction",
                    Some(6) => "aborted",
                    Some(7) => "bus error",
                    Some(9) => "killed",
                    Some(11) => "segmentation fault",
                    Some(15) => "terminated",
                    _ => "unknown signal",
                };
                format!("Runtime exited with error: signal: {name}")
            }
        };
        Self::new("Runtime.ExitError", format!("RequestId: {request_id} Error: {reason}"))
    }
}
