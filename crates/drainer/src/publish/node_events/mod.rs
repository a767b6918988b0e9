//! Kubernetes events: the receipt as `kubectl describe` shows it, on the node and on its pods. Pure, but for `post`.
//!
//! * `reasons`: reasons and notes of the events
//! * `object`: an event as the API server takes it
//! * `post`: sends them
//!
//! kube's own recorder (`kube::runtime::events`) would bring the whole of kube's `runtime` with it, and what it does
//! beyond this is of no use here: it folds repetitions into series, by a cache that lives as long as a controller does
//! and a PATCH that is a right more. Each event here is told once, by a process that Lambda freezes after it.

mod object;
mod post;
mod reasons;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::events::v1::Event;
use kube::Client;
use spillway_core::invocation::Invocation;
use spillway_notice::Kind;
use spillway_receipt::Receipt;
use spillway_settings::Settings;

use super::blockage::Blockage;
use crate::receipt::{Ending, PodRecord, Publication, StepName};
use post::post;

/// Of so many pods it is told that something blocks them: twice as many requests as are under way at once.
const MOST_BLOCKED: usize = 20;

/// What one event tells.
#[derive(Debug)]
struct Told<'a> {
    about: About<'a>,
    severity: EventSeverity,
    reason: &'static str,
    note: String,
    /// When it happened; absent: now.
    at: Option<Timestamp>,
    /// How many pods have to leave, of a drain that has begun.
    pods: Option<usize>,
}

/// Which event it is.
#[derive(Debug, Clone, Copy)]
enum About<'a> {
    Node,
    Pod(&'a PodRecord),
}

/// Kubernetes' two types of events; what people need most comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum EventSeverity {
    Warning,
    Normal,
}

/// The drain that a receipt tells of.
#[derive(Debug, Clone, Copy)]
struct Drain<'a> {
    publication: &'a Publication,
    receipt: &'a Receipt,
    node: &'a str,
    instance: &'a str,
    kind: Kind,
    noticed: Timestamp,
}

impl<'a> Drain<'a> {
    /// None if no node was claimed.
    fn of(publication: &'a Publication) -> Option<Self> {
        let receipt = &publication.receipt;
        receipt.step_ms(StepName::Claimed)?;
        (!receipt.dry_run).then_some(Self {
            publication,
            receipt,
            node: receipt.node.as_deref()?,
            instance: receipt.instance.as_deref()?,
            kind: Kind::named(receipt.notice.kind.as_deref()?)?,
            noticed: receipt.notice.time?,
        })
    }

    fn at(&self, at_ms: i64) -> Timestamp {
        self.noticed.saturating_add(SignedDuration::from_millis(at_ms)).unwrap_or(self.noticed)
    }

    /// What is told, as the API server takes it.
    fn events(&self, told: Vec<Told<'_>>, now: Timestamp) -> Vec<Event> {
        told.into_iter().zip(0..).map(|(told, number)| object::event(told, self, now, number)).collect()
    }
}

/// Tells the node that it is being drained, and how many pods have to leave.
pub(super) async fn tell_begin(
    so_far: &Publication,
    pods: usize,
    settings: &Settings,
    client: &Client,
    invocation: &Invocation,
) {
    if settings.node_events {
        let events = begun(so_far, pods, invocation.clock.now());
        // What is wrong then will be wrong at the end, too, and is told once.
        let _ = post(client, events, invocation.announces_until()).await;
    }
}

/// Tells the node and the pods that something blocks them, or no longer does.
pub(super) async fn tell_blockage(blockage: &Blockage, settings: &Settings, client: &Client, invocation: &Invocation) {
    if settings.node_events {
        // What is wrong then will be wrong at the end, too, and is told once.
        let _ = post(client, blocked(blockage, invocation.clock.now()), invocation.announces_until()).await;
    }
}

/// Tells the node and its pods how it ended.
pub(super) async fn tell_end(publication: &Publication, settings: &Settings, client: &Client, invocation: &Invocation) {
    if settings.node_events {
        let events = ended(publication, invocation.clock.now());
        if let Err(unwritten) = post(client, events, invocation.announces_until()).await {
            unwritten.warn();
        }
    }
}

/// The event of a drain that is under way.
fn begun(so_far: &Publication, pods: usize, now: Timestamp) -> Vec<Event> {
    let Some(drain) = Drain::of(so_far) else { return Vec::new() };
    drain.events(vec![reasons::begun(&drain, pods)], now)
}

/// The events of one that something blocks, or no longer does: the node's, then those of its pods.
fn blocked(blockage: &Blockage, now: Timestamp) -> Vec<Event> {
    let Some(drain) = Drain::of(&blockage.publication) else { return Vec::new() };
    let of_pods = blockage.pods.iter().take(MOST_BLOCKED).map(|pod| reasons::blocked_pod(&drain, pod, blockage.turn));
    let told = std::iter::once(reasons::blocked(&drain, blockage.turn)).chain(of_pods).collect();
    drain.events(told, now)
}

/// The events of one that has ended: the node's first, then those of pods that lost something.
fn ended(publication: &Publication, now: Timestamp) -> Vec<Event> {
    let Some(drain) = Drain::of(publication) else { return Vec::new() };
    // Who joined a drain leaves the pods to the claim's holder to tell.
    let pods = drain.receipt.records().filter(|_| drain.receipt.ending != Some(Ending::Joined));
    let mut of_pods: Vec<_> = pods.filter_map(|pod| reasons::pod(&drain, pod)).collect();
    of_pods.sort_by_key(|told: &Told<'_>| told.severity);
    drain.events(reasons::ended(&drain).into_iter().chain(of_pods).collect(), now)
}

#[cfg(test)]
mod tests;
