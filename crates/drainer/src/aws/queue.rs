//! SQS: a queue of the stack, for announcements or for drains that can wait.

use std::time::Duration;

use serde_json::{Value, json};
use spillway_aws_call::{Call, Caller, Service};

use crate::aws::CallError;

pub(crate) const SEND: &str = "sqs:SendMessage";
const HIDE: &str = "sqs:ChangeMessageVisibility";
const COUNT: &str = "sqs:GetQueueAttributes";
const VISIBLE: &str = "ApproximateNumberOfMessages";

/// The queue.
#[derive(Debug)]
pub(crate) struct Queue {
    caller: Caller,
    url: String,
}

impl Queue {
    /// The queue at that URL.
    pub(crate) fn new(caller: Caller, url: &str) -> Self {
        Self { caller, url: url.to_owned() }
    }

    /// Sends a message, which is handed over after a delay of 15 minutes at most.
    pub(crate) async fn send(&self, body: &str, delay: Duration) -> Result<(), CallError> {
        let message = json!({"QueueUrl": self.url, "MessageBody": body, "DelaySeconds": delay.as_secs()});
        self.call(SEND, "AmazonSQS.SendMessage", &message).await.map(drop)
    }

    /// Keeps a message that is worked on from being handed over again for so long. If the function dies, it comes then.
    pub(crate) async fn hide(&self, receipt_handle: &str, time: Duration) -> Result<(), CallError> {
        let (handle, time) = (receipt_handle, time.as_secs());
        let message = json!({"QueueUrl": self.url, "ReceiptHandle": handle, "VisibilityTimeout": time});
        self.call(HIDE, "AmazonSQS.ChangeMessageVisibility", &message).await.map(drop)
    }

    /// Whether messages wait for an invocation.
    pub(crate) async fn is_waited_for(&self) -> Result<bool, CallError> {
        let asked = json!({"QueueUrl": self.url, "AttributeNames": [VISIBLE]});
        let answer = self.call(COUNT, "AmazonSQS.GetQueueAttributes", &asked).await?;
        let answer: Value = serde_json::from_slice(&answer).map_err(|error| CallError::unanswered(COUNT, error))?;
        let visible = answer["Attributes"][VISIBLE].as_str().and_then(|number| number.parse::<u64>().ok());
        visible.map(|visible| visible > 0).ok_or_else(|| CallError::unanswered(COUNT, "the answer has no number"))
    }

    async fn call(&self, action: &'static str, target: &str, body: &Value) -> Result<Vec<u8>, CallError> {
        let body = body.to_string();
        let headers = vec![("content-type", "application/x-amz-json-1.0"), ("x-amz-target", target)];
        self.caller.call(&Call { headers, ..Call::json(Service::Sqs, action, target, &body) }).await
    }
}
