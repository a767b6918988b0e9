//! The announce function behind its queue, as in the template.
//!
//! Failed records can be received again at once; Lambda leaves them for the queue's visibility timeout. One batch is under way
//! at a time, as by a mapping with a `MaximumConcurrency` of one. The limit of 6 MB is left out.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::NamedTempFile;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::aws::{AnnouncerStack, Aws};
use crate::error::BedError;
use crate::lambda::{InvocationError, Lambda, LambdaOptions, Outcome, built};
use crate::tls;
use crate::world::World;

const ROLE: &str = "spillway-announcer";
/// Shorter than the template's, so that each event is a message of its own.
const WINDOW: Duration = Duration::from_millis(100);
/// Maximum wait for a message.
const WAIT: Duration = Duration::from_mins(2);
/// SQS' largest batch.
const RECEIVED_AT_ONCE: usize = 10;
/// SQS' longest wait for a first message.
const LONG_POLL: Duration = Duration::from_secs(20);

/// An announce function that polls until dropped.
#[derive(Debug)]
pub struct Announcer {
    aws: Aws,
    stack: AnnouncerStack,
    outcomes: watch::Receiver<Vec<Outcome>>,
    polling: JoinHandle<()>,
    _trusted: NamedTempFile,
}

impl Announcer {
    /// Deploys an announcer for the events of `sender`, with these parameters of the template. Queues and session have the
    /// sender's name.
    pub async fn deploy(
        world: &World,
        (name, sender): (&str, &Lambda),
        parameters: &[(&str, &str)],
    ) -> Result<Self, BedError> {
        let parameters: BTreeMap<String, String> =
            parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let aws = world.aws_side();
        let stack = aws.deploy_announcer(sender.access_key_id(), name, &parameters).await?;
        let trusted = trusted()?;
        let mut env = stack.variables.clone();
        env.insert("SSL_CERT_FILE".to_owned(), trusted.path().display().to_string());
        let options = LambdaOptions {
            binary: built("SPILLWAY_ANNOUNCE", "spillway-announce"),
            env,
            function_name: format!("{name}-announcer"),
            timeout: Duration::from_secs(stack.timeout_s),
            ..LambdaOptions::default()
        };
        let lambda = Lambda::in_role(world, ROLE, options).await?;
        let (sender, outcomes) = watch::channel(Vec::new());
        let (polled, queue, batch_size) = (aws.clone(), stack.queue.clone(), stack.batch_size);
        let polling = tokio::spawn(async move {
            let Err(error) = poll(&polled, &queue, batch_size, &lambda, &sender).await;
            eprintln!("the poller of an announcer has failed: {error}");
        });
        Ok(Self { aws, stack, outcomes, polling, _trusted: trusted })
    }

    /// Puts events into the announcer's queue.
    pub async fn send(&self, events: &[Value]) -> Result<(), BedError> {
        self.aws.put_messages(&self.stack.queue, events).await
    }

    /// Waits for that many invocations; returns all outcomes.
    pub async fn until_invoked(&self, times: usize) -> Result<Vec<Outcome>, BedError> {
        let mut outcomes = self.outcomes.clone();
        let invoked = timeout(WAIT, outcomes.wait_for(|outcomes| outcomes.len() >= times)).await;
        match invoked {
            Ok(Ok(outcomes)) => Ok(outcomes.clone()),
            _ => Err(BedError::Waited {
                what: format!("invocation {times} of {}", self.stack.queue),
                waited_s: WAIT.as_secs(),
                last: format!("{:#?}", self.outcomes.borrow()),
            }),
        }
    }

    /// Waits for that many events in the dead-letter queue; returns all.
    pub async fn until_undelivered(&self, events: usize) -> Result<Vec<Value>, BedError> {
        let bodies = self.aws.messages(&self.stack.undelivered, events, WAIT.as_secs()).await?;
        Ok(bodies.iter().map(|body| serde_json::from_str(body).unwrap_or_default()).collect())
    }
}

/// File of the announcer's trusted authorities: that of the bed's webhooks.
fn trusted() -> Result<NamedTempFile, BedError> {
    let write = || {
        let file = NamedTempFile::new()?;
        std::fs::write(file.path(), tls::internet_authority())?;
        Ok(file)
    };
    write().map_err(BedError::io("write the file of trusted authorities"))
}

impl Drop for Announcer {
    fn drop(&mut self) {
        self.polling.abort();
    }
}

/// Invokes the function with each batch of the queue.
async fn poll(
    aws: &Aws,
    queue: &str,
    batch_size: usize,
    lambda: &Lambda,
    outcomes: &watch::Sender<Vec<Outcome>>,
) -> Result<Infallible, BedError> {
    loop {
        let records = gather(aws, queue, batch_size).await?;
        if records.is_empty() {
            continue;
        }
        let outcome = lambda.invoke(json!({"Records": records})).await;
        let failed = failed(&outcome.result, &records);
        let (come_back, done): (Vec<_>, Vec<_>) =
            records.iter().partition(|record| failed.contains(text(record, "messageId")));
        let handles = |records: Vec<&Value>| -> Vec<String> {
            records.into_iter().map(|record| text(record, "receiptHandle").to_owned()).collect()
        };
        aws.settle(queue, &handles(done), &handles(come_back)).await?;
        outcomes.send_modify(|outcomes| outcomes.push(outcome));
    }
}

/// Gathers a batch, which may be empty.
async fn gather(aws: &Aws, queue: &str, batch_size: usize) -> Result<Vec<Value>, BedError> {
    let receive =
        async |most: usize, wait: Duration| aws.receive(queue, most.min(RECEIVED_AT_ONCE), wait.as_secs_f64()).await;
    let mut records = receive(batch_size, LONG_POLL).await?;
    let begun = Instant::now();
    while !records.is_empty() && records.len() < batch_size {
        let Some(left) = WINDOW.checked_sub(begun.elapsed()) else { break };
        records.append(&mut receive(batch_size - records.len(), left).await?);
    }
    Ok(records)
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
