//! Lambda's asynchronous queue: an event is tried again after an error, or when no execution was free, and when it is given
//! up, a record of it goes to the function's on-failure destination.
//!
//! `retry` decides. The waits pass quicker than Lambda's, by the function's [`LambdaOptions::wait_factor`]; an event's age
//! counts them in full. A wait for a free execution is shortened by chance, to no less than half: events that found none together
//! would all come back in the same moment. What Lambda does with a queue that is long (reads it more slowly, loses what is in
//! it) is left out.
//!
//! [`LambdaOptions::wait_factor`]: super::LambdaOptions::wait_factor

use std::time::Duration;

use jiff::{Timestamp, Unit};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::outcome::Outcome;
use super::retry::{Attempt, Condition, Next, next};
use super::{Lambda, Payload, random_uuid};
use crate::aws::Aws;
use crate::error::BedError;

/// What came of an event, after all its attempts.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// The attempts before the last, all of which failed.
    pub failed: Vec<Outcome>,
    /// The attempt that counts; of an event that the function has never got, Lambda's refusal.
    pub last: Outcome,
    /// What Lambda waits between the attempts, those that it refused itself among them.
    pub waits: Vec<Duration>,
    /// What was sent to the failure queue, when the event was given up.
    pub failure_record: Option<Value>,
}

/// What is known of an event in the queue.
struct InQueue {
    since: Instant,
    /// What of the waits has not really passed.
    skipped: Duration,
    waits: Vec<Duration>,
}

impl InQueue {
    fn age(&self) -> Duration {
        self.since.elapsed() + self.skipped
    }

    async fn wait(&mut self, wait: Duration, factor: f64) {
        let really = wait.mul_f64(factor);
        sleep(really).await;
        self.skipped += wait.saturating_sub(really);
        self.waits.push(wait);
    }
}

pub(super) async fn deliver(lambda: &Lambda, payload: &Payload) -> Result<Delivery, BedError> {
    let function = &lambda.function;
    // All attempts at an event have one request id.
    let request_id = random_uuid();
    let mut queued = InQueue { since: Instant::now(), skipped: Duration::ZERO, waits: Vec::new() };
    let mut failed = Vec::new();
    let mut throttled = 0;
    let (last, condition) = loop {
        let (outcome, attempt) = match lambda.attempt(&request_id, payload).await {
            Some(outcome) if outcome.result.is_ok() => break (outcome, None),
            Some(outcome) => {
                throttled = 0;
                (Some(outcome), Attempt::Failed { times: failed.len() + 1 })
            }
            None if function.reserved_concurrency == Some(0) => (None, Attempt::SwitchedOff),
            None => {
                throttled += 1;
                (None, Attempt::Throttled { times: throttled })
            }
        };
        failed.extend(outcome);
        match next(function.event_invoke_config, queued.age(), attempt) {
            Next::AgainAfter(wait) => {
                let chance = if throttled > 0 { f64::midpoint(1.0, fastrand::f64()) } else { 1.0 };
                queued.wait(wait, function.options.wait_factor * chance).await;
            }
            Next::GivenUp(condition) => {
                let attempts = failed.len();
                let last = failed.pop().unwrap_or_else(|| Outcome::refused(&request_id));
                break (last, Some((condition, attempts)));
            }
        }
    };
    let mut failure_record = None;
    if let Some((condition, attempts)) = condition {
        let record = record(&function.arn(), condition, attempts, payload, &last);
        Aws::new(&function.account.endpoint).put_failure(&record.to_string()).await?;
        failure_record = Some(record);
    }
    Ok(Delivery { failed, last, waits: queued.waits, failure_record })
}

/// The record that Lambda sends to an on-failure destination, as AWS documents it. Without any attempt there is no answer to
/// tell.
fn record(function_arn: &str, condition: Condition, attempts: usize, payload: &Payload, last: &Outcome) -> Value {
    // Lambda refuses an event that is not JSON. Here such text gets as far as the function, and is kept.
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
