//! A stand-in for an event source mapping of SQS, with the template's batch size and window.
//!
//! Failed records can be received again at once; Lambda leaves them for the queue's visibility timeout. One batch is under way
//! at a time, so that a mapping's `MaximumConcurrency` is the number of pollers. The limit of 6 MB is left out.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::watch;

use super::{InvocationError, Lambda, Outcome};
use crate::aws::Aws;
use crate::error::BedError;

/// SQS' largest batch.
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
    /// Polls until dropped.
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
            let handles = |records: Vec<&Value>| -> Vec<String> {
                records.into_iter().map(|record| text(record, "receiptHandle").to_owned()).collect()
            };
            self.aws.settle(&self.queue, &handles(done), &handles(come_back)).await?;
            outcomes.send_modify(|outcomes| outcomes.push(outcome));
        }
    }

    /// Gathers a batch, which may be empty.
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

/// Ids of the records that come back, as Lambda reads a function's answer: no list is success; an unreadable list, or an
/// unknown record in the list, fails all.
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
