//! SQS: a message for a queue of the stack.

use serde_json::json;
use spillway_aws_call::{Call, Caller, Service};

use crate::aws::CallError;

pub(crate) const SEND_MESSAGE: &str = "sqs:SendMessage";

/// A queue that the function may send to.
#[derive(Debug)]
pub(crate) struct Queue {
    caller: Caller,
    url: String,
}

impl Queue {
    pub(crate) fn new(caller: Caller, url: &str) -> Self {
        Self { caller, url: url.to_owned() }
    }

    /// Sends a message.
    pub(crate) async fn send(&self, body: &str) -> Result<(), CallError> {
        let asked = json!({"QueueUrl": self.url, "MessageBody": body}).to_string();
        let call = Call {
            service: Service::Sqs,
            action: SEND_MESSAGE,
            region: None,
            method: "POST",
            path: "/",
            headers: vec![("content-type", "application/x-amz-json-1.0"), ("x-amz-target", "AmazonSQS.SendMessage")],
            body: &asked,
        };
        self.caller.call(&call).await.map(drop)
    }
}
