//! Records the work on a notice. The receipt is made from the record, even after a failure.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{Timestamp, Unit};
use kube::Client;
use spillway_core::cluster::ClusterName;
use spillway_core::decision::Decision;
use spillway_core::drain::deadline::Window;
use spillway_core::drain::pod::RequestedBy;
use spillway_core::instance::{Instance, ManagedBy};
use spillway_core::invocation::Invocation;
use spillway_core::node::claimant::Claim;
use spillway_core::replacement::Replacement;
use spillway_notice::continued::{History, PublishedBlockage};
use spillway_notice::{Hook, Notice};
use spillway_receipt::{Earlier, Fate, HookRecord, HookState, LifecycleResult, PodRecord, StepName};

use super::AfterDrain;
use crate::aws::lifecycle::Completion;
use crate::invocation::span;
use crate::node::ClaimedNode;

/// Record of the work on one notice in one invocation.
#[derive(Clone, Default)]
pub(crate) struct Record {
    /// Finished steps and their times.
    pub(crate) steps: Vec<(StepName, Timestamp)>,
    pub(crate) instance: Option<Instance>,
    pub(crate) cluster: Option<ClusterName>,
    pub(crate) managed_by: Option<ManagedBy>,
    pub(crate) decision: Option<Decision>,
    pub(crate) warnings: Vec<String>,
    /// Name of the node, even if the node was not claimed.
    pub(crate) node: Option<String>,
    pub(crate) claim: Option<Claim>,
    /// Kubernetes client that claimed the node, reused for events on the node.
    pub(crate) client: Option<Client>,
    pub(crate) window: Option<Window>,
    /// Records of the pods. In a dry run, the records have predicted fates.
    pub(crate) pods: Vec<PodRecord>,
    /// Requester of each pod's eviction or deletion. The key is the pod's UID.
    pub(crate) left_by: BTreeMap<String, RequestedBy>,
    /// Last published news about blocked pods, kept for a later invocation.
    pub(crate) blockage: Option<PublishedBlockage>,
    pub(crate) after_drain: Option<AfterDrain>,
    /// Result of the attempt to replace the instance. `None` if there was no attempt.
    pub(crate) replacement: Option<Replacement>,
    pub(crate) hook: HookStatus,
    /// Times of the successful heartbeats for the lifecycle action.
    pub(crate) heartbeats: Vec<Timestamp>,
}

/// State of the lifecycle hook at the end of the invocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum HookStatus {
    /// This invocation has not completed the hook: somebody else completes the hook, or it times out.
    #[default]
    Left,
    /// A heartbeat keeps the hook waiting for a later invocation.
    Held,
    Completed(LifecycleResult),
    /// The hook had been completed or had timed out. Contains the result that this invocation sent too late, if any.
    AlreadyOver(Option<LifecycleResult>),
    /// The call to complete the hook with this result failed, so the hook times out.
    Failed(LifecycleResult),
}

impl HookStatus {
    pub(crate) fn after(completion: Completion, result: LifecycleResult) -> Self {
        match completion {
            Completion::Completed => Self::Completed(result),
            Completion::AlreadyOver => Self::AlreadyOver(Some(result)),
        }
    }

    pub(super) fn of(self, hook: &Hook) -> HookRecord {
        let (state, result) = match self {
            Self::Left => (HookState::Left, None),
            Self::Held => (HookState::Held, None),
            Self::Completed(result) => (HookState::Completed, Some(result)),
            Self::AlreadyOver(result) => (HookState::AlreadyOver, result),
            Self::Failed(result) => (HookState::Failed, Some(result)),
        };
        HookRecord { group: hook.group.clone(), name: hook.name.clone(), state, result, heartbeats_ms: Vec::new() }
    }
}

impl Record {
    pub(crate) fn step(&mut self, step: StepName, at: Timestamp) {
        self.steps.push((step, at));
    }

    /// Records the node's name, also in the tracing span.
    pub(crate) fn found(&mut self, node: &str) {
        span::node(node);
        self.node = Some(node.to_owned());
    }

    pub(crate) fn warn(&mut self, warning: String) {
        tracing::warn!("{warning}");
        self.warnings.push(warning);
    }

    /// Records the claim and its time. Leaves out the time of a denied claim.
    pub(crate) fn claimed(&mut self, node: &ClaimedNode, at: Timestamp) {
        let ClaimedNode { claim, client } = node;
        self.found(&claim.node);
        if claim.denied().is_none() {
            self.step(StepName::Claimed, at);
        }
        self.claim = Some(claim.clone());
        self.client = Some(client.clone());
    }

    pub(crate) fn replaced(&mut self, replacement: Option<Replacement>) {
        let Some(replacement) = replacement else { return };
        if let Replacement::Requested(at) = replacement {
            self.step(StepName::ReplacementRequested, at);
        }
        self.replacement = Some(replacement);
    }

    /// Returns the pods that are left for a later invocation. If this invocation recorded no pods, returns the remaining pods of
    /// earlier invocations.
    pub(crate) fn remaining(&self, history: &History) -> Vec<PodRecord> {
        if self.pods.is_empty() {
            return history.remaining.clone();
        }
        let left = self.pods.iter().filter(|pod| matches!(pod.fate, Fate::Lost | Fate::Remaining));
        let grace = |pod: &PodRecord| Duration::from_secs(pod.grace_s);
        left.map(|pod| PodRecord::of(pod.pod.clone(), pod.uid.clone(), Fate::Remaining, grace(pod))).collect()
    }

    /// Returns the summary of this invocation for later invocations.
    pub(crate) fn summary(&self, notice: &Notice, invocation: &Invocation) -> Earlier {
        let mut pods = BTreeMap::new();
        for pod in &self.pods {
            let fate = if pod.fate == Fate::Lost { Fate::Remaining } else { pod.fate };
            *pods.entry(fate.as_str().to_owned()).or_default() += 1;
        }
        let second = |at: Timestamp| at.round(Unit::Second).unwrap_or(at);
        let own = self.claim.as_ref().filter(|claim| claim.holder == notice.event_id);
        let node = own.map(|claim| claim.node.clone());
        let clock = invocation.clock;
        let (from, to) = (second(clock.started()), second(clock.now()));
        Earlier { request_id: invocation.request_id.clone(), from, to, node, pods }
    }
}
