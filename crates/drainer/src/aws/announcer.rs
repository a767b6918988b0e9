//! Lambda: the announcer, asked what is wrong with the webhook's document. It alone may read that.

use serde_json::json;
use spillway_aws_call::Caller;

use crate::aws::CallError;
use crate::aws::itself::{INVOKE, invocation};

/// The function that sends messages.
#[derive(Debug)]
pub struct Announcer {
    caller: Caller,
    /// Where the function is invoked.
    path: String,
}

impl Announcer {
    /// The function of that name.
    pub(crate) fn new(caller: Caller, name: &str) -> Self {
        Self { caller, path: format!("/2015-03-31/functions/{name}/invocations") }
    }

    /// What is wrong with the webhook's document, in the announcer's words: nothing if a message would be sent by it.
    pub async fn wrong(&self) -> Result<Vec<String>, CallError> {
        let asked = json!({"source": "spillway", "detail-type": "Spillway Doctor", "detail": {}}).to_string();
        let answer = self.caller.json(&invocation(&self.path, "RequestResponse", &asked)).await?;
        if let Some(wrong) = answer["wrong"].as_array() {
            return Ok(wrong.iter().filter_map(|one| one.as_str().map(str::to_owned)).collect());
        }
        // What fails answers with its error.
        let text = |member: &str| answer[member].as_str().unwrap_or_default();
        Err(CallError::answered(INVOKE, text("errorType"), text("errorMessage"), None))
    }
}
