//! Lambda's asynchronous queue: an event is tried again after an error, and when the last attempt
//! has failed, a record of it goes to the function's on-failure destination.
//!
//! Lambda waits one minute before the second attempt and two before the third. Here there is no wait.

use jiff::{Timestamp, Unit};
use serde_json::{Value, json};

use super::outcome::{InvocationError, Outcome};
use super::{Lambda, Payload, random_uuid};
use crate::aws::Aws;
use crate::error::BedError;

/// What came of an event, after all its attempts.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// The attempts before the last, all of which failed.
    pub failed: Vec<Outcome>,
    /// The attempt that counts.
    pub last: Outcome,
    /// What was sent to the failure queue, when the last attempt failed too.
    pub failure_record: Option<Value>,
}

pub(super) async fn deliver(lambda: &Lambda, payload: &Payload) -> Result<Delivery, BedError> {
    let function = &lambda.function;
    // All attempts at an event have one request id.
    let request_id = random_uuid();
    let mut failed = Vec::new();
    let last = loop {
        let outcome = lambda.attempt(&request_id, payload).await;
        if outcome.result.is_ok() || failed.len() == function.options.maximum_retry_attempts {
            break outcome;
        }
        failed.push(outcome);
    };
    let mut failure_record = None;
    if let Err(error) = &last.result {
        let record = record(&function.arn(), &request_id, failed.len() + 1, payload, error);
        Aws::new(&function.account.endpoint).put_failure(&record.to_string()).await?;
        failure_record = Some(record);
    }
    Ok(Delivery { failed, last, failure_record })
}

/// The record that Lambda sends to an on-failure destination, as AWS documents it.
fn record(function_arn: &str, request_id: &str, attempts: usize, payload: &Payload, error: &InvocationError) -> Value {
    // Lambda refuses an event that is not JSON. Here such text gets as far as the function, and is kept.
    let event = serde_json::from_str(&payload.0).unwrap_or_else(|_| json!(payload.0));
    let now = Timestamp::now().round(Unit::Millisecond).unwrap_or_default();
    json!({
        "version": "1.0",
        "timestamp": format!("{now:.3}"),
        "requestContext": {
            "requestId": request_id,
            "functionArn": format!("{function_arn}:$LATEST"),
            "condition": "RetriesExhausted",
            "approximateInvokeCount": attempts,
        },
        "requestPayload": event,
        "responseContext": {
            "statusCode": 200,
            "executedVersion": "$LATEST",
            "functionError": "Unhandled",
        },
        "responsePayload": error.payload,
    })
}
