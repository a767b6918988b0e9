//! Publishes Kubernetes events about the node and its pods, for `kubectl describe`.
//!
//! kube's recorder (`kube::runtime::events`) is not used: it needs kube's `runtime` and the right to patch events.

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

use super::blockage::BlockedPods;
use crate::receipt::{Ending, PodRecord, Publication, StepName};
use post::post;

/// Maximum number of blocked pods that get an event of their own.
const MOST_BLOCKED: usize = 20;

#[derive(Debug)]
struct EventDraft<'a> {
    about: About<'a>,
    severity: EventSeverity,
    reason: &'static str,
    note: String,
    /// Time of the event. `None` stands for the current time.
    at: Option<Timestamp>,
    /// Number of pods that have to leave. Set only in the event about the start of a drain.
    pods: Option<usize>,
}

#[derive(Debug, Clone, Copy)]
enum About<'a> {
    Node,
    Pod(&'a PodRecord),
}

/// Event types of Kubernetes, most important first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum EventSeverity {
    Warning,
    Normal,
}

#[derive(Debug, Clone, Copy)]
struct ReceiptDrain<'a> {
    publication: &'a Publication,
    receipt: &'a Receipt,
    node: &'a str,
    instance: &'a str,
    kind: Kind,
    noticed: Timestamp,
}

impl<'a> ReceiptDrain<'a> {
    /// Returns `None` if no node was claimed, or if the drain was a dry run.
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

    fn events(&self, drafts: Vec<EventDraft<'_>>, now: Timestamp) -> Vec<Event> {
        drafts.into_iter().zip(0..).map(|(draft, number)| object::event(draft, self, now, number)).collect()
    }
}

/// Publishes the start of a drain as an event on the node. `pods` is the number of pods that have to leave.
pub(super) async fn publish_begin(
    so_far: &Publication,
    pods: usize,
    settings: &Settings,
    client: &Client,
    invocation: &Invocation,
) {
    if settings.node_events {
        let events = begun(so_far, pods, invocation.clock.now());
        // Failures are logged once, at the end.
        let _ = post(client, events, invocation.announces_until()).await;
    }
}

/// Publishes Kubernetes events on the node and on its blocked or unblocked pods.
pub(super) async fn publish_blockage(
    blockage: &BlockedPods,
    settings: &Settings,
    client: &Client,
    invocation: &Invocation,
) {
    if settings.node_events {
        // Failures are logged once, at the end.
        let _ = post(client, blocked(blockage, invocation.clock.now()), invocation.announces_until()).await;
    }
}

/// Publishes the end of a drain as events on the node and on its pods.
pub(super) async fn publish_end(
    publication: &Publication,
    settings: &Settings,
    client: &Client,
    invocation: &Invocation,
) {
    if settings.node_events {
        let events = ended(publication, invocation.clock.now());
        if let Err(unwritten) = post(client, events, invocation.announces_until()).await {
            unwritten.warn();
        }
    }
}

/// Builds the event about the start of a drain.
fn begun(so_far: &Publication, pods: usize, now: Timestamp) -> Vec<Event> {
    let Some(drain) = ReceiptDrain::of(so_far) else { return Vec::new() };
    drain.events(vec![reasons::begun(&drain, pods)], now)
}

/// Builds the events about blocked pods: one on the node, then one on each pod, up to [`MOST_BLOCKED`].
fn blocked(blockage: &BlockedPods, now: Timestamp) -> Vec<Event> {
    let Some(drain) = ReceiptDrain::of(&blockage.publication) else { return Vec::new() };
    let of_pods = blockage.pods.iter().take(MOST_BLOCKED).map(|pod| reasons::blocked_pod(&drain, pod, blockage.turn));
    let drafts = std::iter::once(reasons::blocked(&drain, blockage.turn)).chain(of_pods).collect();
    drain.events(drafts, now)
}

/// Builds the events of an ended drain: one on the node, then the events on its pods, warnings first.
fn ended(publication: &Publication, now: Timestamp) -> Vec<Event> {
    let Some(drain) = ReceiptDrain::of(publication) else { return Vec::new() };
    // After a join, the notice that holds the claim publishes events about the pods.
    let pods = drain.receipt.records().filter(|_| drain.receipt.ending != Some(Ending::Joined));
    let mut of_pods: Vec<_> = pods.filter_map(|pod| reasons::pod(&drain, pod)).collect();
    of_pods.sort_by_key(|draft: &EventDraft<'_>| draft.severity);
    drain.events(reasons::ended(&drain).into_iter().chain(of_pods).collect(), now)
}

#[cfg(test)]
mod tests;
