//! The deliveries: an event goes through Lambda's queue as its posting says; what came of it is kept, and its log.

use serde_json::Value;
use spillway_bed::aws::{Aws, Schedule};
use spillway_bed::lambda::{Delivery, Lambda, Outcome};
use spillway_bed::{BedError, World};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use tokio::time::sleep;

use super::moved::Said;
use super::notice::{self, Kind};
use super::plan::{Copies, Posting};
use super::verdict::{Attempt, Handed};

/// Where another delivery has its rule: the function, or a schedule of its own, has invoked it.
const INVOKED: &str = "Invoke";

/// One for all nodes: the function is one too.
#[derive(Debug)]
pub(super) struct Post {
    lambda: Lambda,
    aws: Aws,
    log: PathBuf,
    kept: Mutex<Kept>,
    /// The deliveries under way of each instance.
    under_way: watch::Sender<BTreeMap<String, usize>>,
    /// Whoever holds it takes what the function has itself invoked with, and nobody else has any in hand.
    forwarding: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct Kept {
    log: File,
    handed: Vec<Handed>,
    /// Why a delivery could not be made, by the test bed's fault.
    broken: Option<BedError>,
}

impl Post {
    pub(super) fn open(world: &World, lambda: Lambda) -> Result<Self, BedError> {
        let log = world.logs.join("function.log");
        let file = File::create(&log).map_err(BedError::io(format!("create {}", log.display())))?;
        let kept = Mutex::new(Kept { log: file, handed: Vec::new(), broken: None });
        let under_way = watch::Sender::default();
        Ok(Self { lambda, aws: world.aws_side(), log, kept, under_way, forwarding: tokio::sync::Mutex::default() })
    }

    /// The function's log.
    pub(super) fn log(&self) -> &Path {
        &self.log
    }

    /// Delivers an event about an instance as the posting says. Waits for nothing.
    pub(super) fn send(self: &Arc<Self>, instance: &str, event: Value, posting: Posting) {
        self.count(instance, |count| count + 1);
        let (post, instance) = (Arc::clone(self), instance.to_owned());
        tokio::spawn(async move {
            sleep(posting.delay).await;
            let hand = || post.hand(&instance, &event);
            match posting.copies {
                Copies::One => hand().await,
                Copies::Again => {
                    hand().await;
                    hand().await;
                }
                Copies::AtOnce => drop(tokio::join!(hand(), hand())),
            }
            post.count(&instance, |count| count - 1);
        });
    }

    /// Sends on what the function has had itself invoked with, whatever instance that is about.
    pub(super) async fn forward(self: &Arc<Self>) -> Result<(), BedError> {
        let _alone = self.forwarding.lock().await;
        let delivered = self.aws.take_deliveries(self.lambda.access_key_id()).await?;
        for one in delivered.into_iter().filter(|one| one.rule == INVOKED) {
            let known: Vec<String> = self.under_way.borrow().keys().cloned().collect();
            let instance = known.into_iter().find(|instance| notice::is_about(&one.event, instance));
            self.send(&instance.unwrap_or_default(), one.event, Posting::PROMPT);
        }
        Ok(())
    }

    /// Waits until nothing about the instance is under way, and nothing follows from what was.
    pub(super) async fn until_idle(self: &Arc<Self>, instance: &str) -> Result<(), BedError> {
        let is_idle = |under_way: &BTreeMap<String, usize>| under_way.get(instance).copied().unwrap_or_default() == 0;
        loop {
            // The sender lives as long as this does.
            let _ = self.under_way.subscribe().wait_for(is_idle).await;
            self.forward().await?;
            if is_idle(&self.under_way.borrow()) {
                return Ok(());
            }
        }
    }

    /// The same for all instances.
    pub(super) async fn until_all_idle(self: &Arc<Self>) -> Result<(), BedError> {
        let instances: Vec<String> = self.under_way.borrow().keys().cloned().collect();
        for instance in instances {
            self.until_idle(&instance).await?;
        }
        Ok(())
    }

    /// What the function has scheduled for an instance, the earliest first.
    pub(super) async fn schedules(&self, instance: &str) -> Result<Vec<Schedule>, BedError> {
        let mut schedules = self.aws.schedules(self.lambda.access_key_id()).await?;
        schedules.retain(|schedule| notice::is_about(&schedule.input, instance));
        Ok(schedules)
    }

    /// What came of all deliveries, when none is under way; an error if the test bed failed.
    pub(super) fn handed(&self) -> Result<Vec<Handed>, BedError> {
        let mut kept = self.kept();
        kept.broken.take().map_or_else(|| Ok(std::mem::take(&mut kept.handed)), Err)
    }

    async fn hand(&self, instance: &str, event: &Value) {
        let delivery = self.lambda.invoke_async(event).await;
        let mut kept = self.kept();
        match delivery {
            Ok(delivery) => {
                for line in outcomes(&delivery).flat_map(|outcome| &outcome.logs) {
                    // A log that cannot be written is missed by nobody while there is no violation.
                    let _ = writeln!(kept.log, "{line}");
                }
                kept.handed.push(handed(instance, event, &delivery));
            }
            Err(error) => kept.broken = Some(error),
        }
    }

    fn count(&self, instance: &str, change: impl FnOnce(usize) -> usize) {
        self.under_way.send_modify(|under_way| {
            let count = under_way.entry(instance.to_owned()).or_default();
            *count = change(*count);
        });
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn outcomes(delivery: &Delivery) -> impl Iterator<Item = &Outcome> {
    delivery.failed.iter().chain([&delivery.last])
}

fn handed(instance: &str, event: &Value, delivery: &Delivery) -> Handed {
    let event_id = notice::event_id(event);
    let panics = outcomes(delivery).flat_map(|outcome| &outcome.logs).filter(|line| line.contains("panicked at"));
    Handed {
        kind: Kind::of(event),
        event_id: event_id.to_owned(),
        instance: instance.to_owned(),
        request_id: delivery.last.request_id.clone(),
        attempts: outcomes(delivery).map(|outcome| attempt(event_id, outcome)).collect(),
        panics: panics.cloned().collect(),
    }
}

fn attempt(event_id: &str, outcome: &Outcome) -> Attempt {
    let receipts: Vec<Value> = receipts(outcome).filter(|receipt| receipt["notice"]["event_id"] == event_id).collect();
    let pods = receipts.iter().flat_map(|receipt| receipt["pods"].as_array().into_iter().flatten());
    Attempt {
        from: outcome.started,
        to: outcome.started + outcome.duration,
        receipts: receipts.len(),
        ending: receipts.last().and_then(|receipt| receipt["ending"].as_str().map(str::to_owned)),
        error: outcome.result.as_ref().err().map(|error| error.error_type.clone()),
        pods: pods.map(said).collect(),
    }
}

/// What a receipt says of a pod.
fn said(pod: &Value) -> Said {
    let number = |value: &Value| value.as_u64().and_then(|count| usize::try_from(count).ok()).unwrap_or_default();
    let count = |answer: &str| number(&pod["answers"][answer]);
    let all: usize = pod["answers"].as_object().into_iter().flatten().map(|(_, count)| number(count)).sum();
    let (_, name) = pod["pod"].as_str().and_then(|pod| pod.split_once('/')).unwrap_or_default();
    Said {
        pod: name.to_owned(),
        evicted: count("evicted"),
        deleted: count("deleted"),
        unanswered: count("no-answer") + number(&pod["evictions"]).saturating_sub(all),
    }
}

/// The receipts in the log of an attempt.
fn receipts(outcome: &Outcome) -> impl Iterator<Item = Value> {
    let lines = outcome.logs.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter(|line| line.get("receipt").is_some())
}
