//! A stand-in for Lambda's poller of SQS queues, the event source mapping; it is set up by what the template says of that.
//!
//! It gathers records until a batch is full or its window is over, invokes the function, deletes what went well, and
//! leaves the rest to be received again. Lambda leaves it for the queue's visibility timeout: here there is no wait. It has one
//! batch under way at a time, so that a mapping's `MaximumConcurrency` is the number of pollers; and it knows no limit of 6 MB.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::watch;

use super::{InvocationError, Lambda, Outcome};
use crate::aws::Aws;
use crate::error::BedError;

/// The most that SQS hands over at a time.
const RECEIVED_AT_ONCE: usize = 10;

/// SQS' longest wait for a first message.
const LONG_POLL: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub(crate) struct Poller {
    pub(crate) aws: Aws,
    pub(crate) queue: String,
    pub(crate) lambda: Lambda,
    pub(crate) batch_size: usize,
    pub(crate) window: Duration,
}

impl Poller {
    /// Polls until dropped; tells what came of each invocation.
    pub(crate) async fn run(self, outcomes: watch::Sender<Vec<Outcome>>) -> Result<Infallible, BedError> {
        loop {
            let records = self.gather().await?;
            if records.is_empty() {
                continue;
            }
            let outcome = self.lambda.invoke(json!({"Records": records})).await;
            if outcome.is_refused() {
                // Lambda backs off, too.
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            let failed = failed(&outcome.result, &records);
            let (come_back, done): (Vec<_>, Vec<_>) =
                records.iter().partition(|record| failed.contains(text(record, "messageId")));
            let handles = |records: Vec<&'_ Value>| -> Vec<String> {
                records.into_iter().map(|record| text(record, "receiptHandle").to_owned()).collect()
            };
            self.aws.settle(&self.queue, &handles(done), &handles(come_back)).await?;
            outcomes.send_modify(|outcomes| outcomes.push(outcome));
        }
    }

    /// One batch; none if nothing came.
    async fn gather(&self) -> Result<Vec<Value>, BedError> {
        let mut records = self.receive(self.batch_size, LONG_POLL).await?;
        let begun = Instant::now();
        while !records.is_empty() && records.len() < self.batch_size {
            let Some(left) = self.window.checked_sub(begun.elapsed()) else { break };
            records.append(&mut self.receive(self.batch_size - records.len(), left).await?);
        }
        Ok(records)
    }

    async fn receive(&self, most: usize, wait: Duration) -> Result<Vec<Value>, BedError> {
        self.aws.receive(&self.queue, most.min(RECEIVED_AT_ONCE), wait.as_secs_f64()).await
    }
}

/// The records that are to come back, by their ids. As Lambda reads a function's answer: nothing said is all well, and
/// what cannot be read, or names a record that there is not, is all failed.
fn failed<'a>(result: &'a Result<Value, InvocationError>, records: &'a [Value]) -> BTreeSet<&'a str> {
    let all: BTreeSet<&str> = records.iter().map(|record| text(record, "messageId")).collect();
    let Ok(answer) = result else { return all };
    match &answer["batchItemFailures"] {
        Value::Null => BTreeSet::new(),
        Value::Array(failures) => {
            let named: BTreeSet<&str> = failures.iter().map(|failure| text(failure, "itemIdentifier")).collect();
            if named.is_subset(&all) { named } else { all }
        }
        _ => all,
    }
}

fn text<'a>(record: &'a Value, field: &str) -> &'a str {
    record[field].as_str().unwrap_or_default()
}
