//! A message of the queue of drains that can wait: what the function told itself, as Lambda's poller hands it back.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::NoticeError;
use crate::envelope::{parse, unreadable};

/// A message of the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queued {
    /// The continuation.
    pub payload: Value,
    /// When the queue was to hand it over: what comes later had to wait for an invocation.
    pub due: Timestamp,
    /// By which SQS knows the message while the function works on it.
    pub receipt_handle: String,
}

/// What the function writes into a message.
#[derive(Debug, Serialize, Deserialize)]
struct Body {
    due: Timestamp,
    payload: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    body: String,
    receipt_handle: String,
}

impl Queued {
    /// The body of a message that is to be handed over then.
    #[must_use]
    pub fn body(payload: Value, due: Timestamp) -> String {
        serde_json::to_string(&Body { due, payload }).expect("it is plain data with text for keys")
    }

    /// Reads an event, if Lambda's poller of SQS queues has made it. The template lets it take one message at a time.
    pub fn read(event: &Value) -> Option<Result<Self, NoticeError>> {
        let records = event.as_object().filter(|fields| fields.len() == 1)?.get("Records")?.as_array()?;
        let one = |records: &[Value]| {
            let [record] = records else { return Err(unreadable("Records", "there is not exactly one")) };
            let Record { body, receipt_handle } = parse(record.clone(), "Records[0]")?;
            let body = serde_json::from_str(&body).unwrap_or(Value::String(body));
            let Body { due, payload } = parse(body, "Records[0].body")?;
            Ok(Self { payload, due, receipt_handle })
        };
        Some(one(records))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(body: &str) -> Value {
        json!({"Records": [{"messageId": "m-1", "receiptHandle": "handle", "body": body, "eventSource": "aws:sqs"}]})
    }

    #[test]
    fn a_message_is_read_as_it_was_written() {
        let payload = json!({"spillway-continuation": {"notice": {}, "earlier": []}});
        let due = "2026-11-25T12:00:00Z".parse().unwrap();
        let queued = Queued::read(&event(&Queued::body(payload.clone(), due))).unwrap().unwrap();
        assert_eq!(queued, Queued { payload, due, receipt_handle: "handle".to_owned() });
    }

    #[test]
    fn what_comes_from_elsewhere_is_no_message() {
        for event in [json!({"source": "aws.ec2", "Records": []}), json!({"Records": {}}), json!([])] {
            assert_eq!(Queued::read(&event), None, "{event}");
        }
    }

    #[test]
    fn a_message_that_cannot_be_read_is_told_with_its_place() {
        let refused = |event| Queued::read(&event).unwrap().unwrap_err().to_string();
        let nothing = "cannot read the notice: at Records[0].body: it is no JSON object";
        assert_eq!(refused(event("drain!")), nothing);
        let two = json!({"Records": [{}, {}]});
        assert_eq!(refused(two), "cannot read the notice: at Records: there is not exactly one");
    }
}
