//! Lambda's asynchronous queue ("Error handling for asynchronous invocation"): an event is retried after an error, or when no
//! execution was free. The record of an event that is given up goes to the function's on-failure destination.
//!
//! Waits pass quicker than Lambda's, by [`LambdaOptions::wait_factor`](super::LambdaOptions::wait_factor); an event's age
//! counts them in full. Lambda's treatment of long queues is left out.

use std::time::Duration;

use jiff::{Timestamp, Unit};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::outcome::Outcome;
use super::{Lambda, Payload, random_uuid};
use crate::aws::Aws;
use crate::error::BedError;

/// Longest wait for a free execution.
const LONGEST_WAIT: Duration = Duration::from_mins(5);

/// Result of an event, after all its attempts.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// Failed attempts before the last.
    pub failed: Vec<Outcome>,
    /// The last attempt; Lambda's refusal if there was none.
    pub last: Outcome,
    /// Waits between the attempts, those for a free execution among them.
    pub waits: Vec<Duration>,
    /// Record in the failure queue, if the event was given up.
    pub failure_record: Option<Value>,
}

pub(super) async fn deliver(lambda: &Lambda, payload: &Payload) -> Result<Delivery, BedError> {
    let function = &lambda.function;
    // All attempts at an event have one request id.
    let request_id = random_uuid();
    let (queued, mut skipped, mut waits) = (Instant::now(), Duration::ZERO, Vec::new());
    let (mut failed, mut throttled) = (Vec::new(), 0);
    let condition = loop {
        let wait = match lambda.attempt(&request_id, payload).await {
            Some(last) if last.result.is_ok() => return Ok(Delivery { failed, last, waits, failure_record: None }),
            Some(outcome) => {
                throttled = 0;
                failed.push(outcome);
                if failed.len() > function.retries {
                    break "RetriesExhausted";
                }
                Duration::from_mins(if failed.len() == 1 { 1 } else { 2 })
            }
            None if function.reserved_concurrency == Some(0) => break "ZeroReservedConcurrency",
            None => {
                throttled += 1;
                let doubled = 1_u64.checked_shl(throttled - 1).unwrap_or(u64::MAX);
                Duration::from_secs(doubled).min(LONGEST_WAIT)
            }
        };
        if queued.elapsed() + skipped + wait > function.maximum_age {
            break "EventAgeExceeded";
        }
        // Events that found no execution together must not all come back in the same moment.
        let chance = if throttled > 0 { f64::midpoint(1.0, fastrand::f64()) } else { 1.0 };
        let really = wait.mul_f64(function.options.wait_factor * chance);
        sleep(really).await;
        skipped += wait.saturating_sub(really);
        waits.push(wait);
    };
    let attempts = failed.len();
    let last = failed.pop().unwrap_or_else(|| Outcome::refused(&request_id));
    let record = record(&function.arn(), condition, attempts, payload, &last);
    Aws::new(&function.account.endpoint).put_failure(&record.to_string()).await?;
    Ok(Delivery { failed, last, waits, failure_record: Some(record) })
}

/// The record that Lambda sends to an on-failure destination. Without an attempt there is no response.
fn record(function_arn: &str, condition: &str, attempts: usize, payload: &Payload, last: &Outcome) -> Value {
    // Lambda refuses an event that is not JSON. Here such a text reaches the function, and is kept.
    let event = serde_json::from_str(&payload.0).unwrap_or_else(|_| json!(payload.0));
    let now = Timestamp::now().round(Unit::Millisecond).unwrap_or_default();
    let mut record = json!({
        "version": "1.0",
        "timestamp": format!("{now:.3}"),
        "requestContext": {
            "requestId": last.request_id,
            "functionArn": format!("{function_arn}:$LATEST"),
            "condition": condition,
            "approximateInvokeCount": attempts,
        },
        "requestPayload": event,
    });
    if let (1.., Err(error)) = (attempts, &last.result) {
        record["responseContext"] =
            json!({"statusCode": 200, "executedVersion": "$LATEST", "functionError": "Unhandled"});
        record["responsePayload"] = error.payload.clone();
    }
    record
}
