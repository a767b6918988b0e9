//! Sends messages for the announcer function to an SQS queue.

use serde_json::json;
use spillway_aws_call::{Call, Caller, Service};

use crate::aws::CallError;

pub(crate) const SEND: &str = "sqs:SendMessage";

#[derive(Debug)]
pub(crate) struct Queue {
    caller: Caller,
    url: String,
}

impl Queue {
    pub(crate) fn new(caller: Caller, url: &str) -> Self {
        Self { caller, url: url.to_owned() }
    }

    pub(crate) async fn send(&self, body: &str) -> Result<(), CallError> {
        let message = json!({"QueueUrl": self.url, "MessageBody": body}).to_string();
        let headers = vec![("content-type", "application/x-amz-json-1.0"), ("x-amz-target", "AmazonSQS.SendMessage")];
        let call = Call { headers, ..Call::json(Service::Sqs, SEND, "AmazonSQS.SendMessage", &message) };
        self.caller.call(&call).await.map(drop)
    }
}
