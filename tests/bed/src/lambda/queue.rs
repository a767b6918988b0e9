//! Lambda's asynchronous queue ("Error handling for asynchronous invocation"): an event is retried after an error, or when no
//! execution was free. The record of an event that is given up goes to the function's on-failure destination.
//!
//! Waits pass quicker than Lambda's, by [`LambdaOptions::wait_factor`](super::LambdaOptions::wait_factor); an event's age
//! counts them in full. Lambda's treatment of long queues is left out.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::outcome::Outcome;
use super::{Lambda, random_uuid};
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
}

pub(super) async fn deliver(lambda: &Lambda, payload: &str) -> Result<Delivery, BedError> {
    let function = &lambda.function;
    // All attempts at an event have one request id.
    let request_id = random_uuid();
    let (queued, mut skipped) = (Instant::now(), Duration::ZERO);
    let (mut failed, mut throttled) = (Vec::new(), 0);
    let condition = loop {
        let wait = match lambda.attempt(&request_id, payload).await {
            Some(last) if last.result.is_ok() => return Ok(Delivery { failed, last }),
            Some(outcome) => {
                throttled = 0;
                failed.push(outcome);
                if failed.len() > function.retries {
                    break "RetriesExhausted";
                }
                Duration::from_mins(if failed.len() == 1 { 1 } else { 2 })
            }
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
    };
    // Lambda refuses an event that is not JSON. Here such a text reaches the function, and is kept.
    let event: Value = serde_json::from_str(payload).unwrap_or_else(|_| json!(payload));
    let attempts = failed.len();
    let context = json!({"requestId": request_id, "condition": condition, "approximateInvokeCount": attempts});
    let last = failed.pop().unwrap_or_else(|| Outcome::refused(request_id));
    let record = json!({"version": "1.0", "requestContext": context, "requestPayload": event});
    Aws::new(&function.account.endpoint).put_failure(&record.to_string()).await?;
    Ok(Delivery { failed, last })
}
