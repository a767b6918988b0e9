//! Outcomes of invocations.

use serde_json::Value;

use crate::error::BedError;

/// Outcome of one invocation.
#[derive(Debug, Clone)]
pub struct Outcome {
    pub result: Result<Value, InvocationError>,
    /// Lines of stdout and stderr, from the event (or the cold start) to the next poll.
    pub logs: Vec<String>,
    pub request_id: String,
}

impl Outcome {
    /// Lambda's answer if no execution is free.
    pub(super) fn refused(request_id: String) -> Self {
        let error = InvocationError::new("TooManyRequestsException", "Rate Exceeded.".to_owned());
        Self { result: Err(error), logs: Vec::new(), request_id }
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

/// A failed invocation, as its caller sees it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{error_type}: {message}")]
pub struct InvocationError {
    pub error_type: String,
    pub message: String,
}

impl InvocationError {
    pub(super) fn new(error_type: &str, message: String) -> Self {
        Self { error_type: error_type.to_owned(), message }
    }

    /// The function's own report.
    pub(super) fn reported(body: &[u8]) -> Self {
        let report: Value = serde_json::from_slice(body).unwrap_or_default();
        let text = |key: &str| report[key].as_str().unwrap_or_default().to_owned();
        Self { error_type: text("errorType"), message: text("errorMessage") }
    }
}
