//! What came of an invocation, and Lambda's own words for what went wrong.

use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::error::BedError;

/// What came of one invocation.
#[derive(Debug, Clone)]
pub struct Outcome {
    pub result: Result<Value, InvocationError>,
    /// What the process wrote to stdout and stderr, from the event (or its start, if this was a cold
    /// start) until it asked for the next one.
    pub logs: Vec<String>,
    /// When the function got the event.
    pub started: Timestamp,
    /// From the event to the answer, or to the end of the process.
    pub duration: Duration,
    pub request_id: String,
    /// Only of a cold start.
    pub init: Option<Init>,
}

impl Outcome {
    /// What Lambda answers when no execution is free.
    pub(super) fn refused(request_id: &str) -> Self {
        Self {
            result: Err(InvocationError::new("TooManyRequestsException", "Rate Exceeded.".to_owned())),
            logs: Vec::new(),
            started: Timestamp::now(),
            duration: Duration::ZERO,
            request_id: request_id.to_owned(),
            init: None,
        }
    }

    /// Whether no execution was free.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.result.as_ref().is_err_and(|error| error.error_type == "TooManyRequestsException")
    }

    /// An error unless the function says that it has drained the node.
    pub fn drained(&self) -> Result<(), BedError> {
        match &self.result {
            Ok(answer) if answer["ending"] == "drained" => Ok(()),
            Ok(answer) => Err(BedError::NotDrained { answer: answer.to_string() }),
            Err(error) => Err(BedError::NotDrained { answer: error.to_string() }),
        }
    }
}

/// How a process started.
#[derive(Debug, Clone, Copy)]
pub struct Init {
    /// When the binary was executed.
    pub started: Timestamp,
    /// When it asked for its first event.
    pub first_poll: Timestamp,
    /// From the one to the other, by a clock that does not jump.
    pub duration: Duration,
}

/// A failed invocation, as its caller sees it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{error_type}: {message}")]
pub struct InvocationError {
    pub error_type: String,
    pub message: String,
    /// All of it, with whatever else the function said: what a failure record keeps.
    pub payload: Value,
}

impl InvocationError {
    pub(super) fn new(error_type: &str, message: String) -> Self {
        let payload = json!({"errorType": error_type, "errorMessage": message});
        Self { error_type: error_type.to_owned(), message, payload }
    }

    /// The body of the function's own error report. What is not in it comes from the header, else
    /// from Lambda.
    pub(super) fn reported(body: &[u8], header: Option<&str>) -> Self {
        let payload: Value =
            serde_json::from_slice(body).unwrap_or_else(|_| Value::String(String::from_utf8_lossy(body).into_owned()));
        let text = |key: &str| payload.get(key).and_then(Value::as_str).map(str::to_owned);
        Self {
            error_type: text("errorType")
                .or_else(|| header.map(str::to_owned))
                .unwrap_or_else(|| "Unhandled".to_owned()),
            message: text("errorMessage").unwrap_or_default(),
            payload,
        }
    }

    pub(super) fn timed_out(request_id: &str, limit: Duration) -> Self {
        let message = format!("RequestId: {request_id} Error: Task timed out after {:.2} seconds", limit.as_secs_f64());
        Self::new("Sandbox.Timedout", message)
    }

    pub(super) fn exited(request_id: &str, status: ExitStatus) -> Self {
        let message = format!("RequestId: {request_id} Error: {}", exit_reason(status));
        Self::new("Runtime.ExitError", message)
    }
}

/// How Lambda words the end of a process.
fn exit_reason(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
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
    }
}
