//! What has been done about a notice so far, as plain data: also when it fails half way. The receipt is made from it.

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
use spillway_notice::continued::{History, PublishedBlockage};
use spillway_notice::{Hook, Notice};
use spillway_receipt::{Earlier, Fate, HookRecord, HookState, LifecycleResult, PodRecord, StepName};

use super::AfterDrain;
use crate::aws::lifecycle::Completion;
use crate::invocation::span;
use crate::node::ClaimedNode;

/// What has been done about one notice in one invocation.
#[derive(Clone, Default)]
pub(crate) struct Record {
    /// The steps that are done, and when.
    pub(crate) steps: Vec<(StepName, Timestamp)>,
    /// The instance, as EC2 describes it.
    pub(crate) instance: Option<Instance>,
    /// Its cluster.
    pub(crate) cluster: Option<ClusterName>,
    /// Who manages its node.
    pub(crate) managed_by: Option<ManagedBy>,
    /// What was to be done.
    pub(crate) decision: Option<Decision>,
    /// What is wrong, and does not keep the notice from being handled.
    pub(crate) warnings: Vec<String>,
    /// The node, claimed or not.
    pub(crate) node: Option<String>,
    /// The claim on it.
    pub(crate) claim: Option<Claim>,
    /// The way by which it was claimed: what is written on the node at the end goes the same way.
    pub(crate) client: Option<Client>,
    /// From when to when it was drained.
    pub(crate) window: Option<Window>,
    /// What became of its pods, or in a dry run would become of them.
    pub(crate) pods: Vec<PodRecord>,
    /// Whose request each pod followed that had to leave, by its UID.
    pub(crate) followed: BTreeMap<String, RequestedBy>,
    /// What has been published of what blocked it, for a later invocation.
    pub(crate) blockage: Option<PublishedBlockage>,
    /// What was waited for when the last of them had gone.
    pub(crate) after_drain: Option<AfterDrain>,
    /// What the lifecycle hook was told.
    pub(crate) hook: HookStatus,
}

/// What became of the lifecycle hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum HookStatus {
    /// Not touched: it is left to its owner, or to its own timeout.
    #[default]
    Left,
    /// Held for a later invocation.
    Held,
    /// Completed by us, with that result.
    Completed(LifecycleResult),
    /// Nobody waited any more: it had been completed, or its time had passed. With the result that it was sent, if any.
    AlreadyOver(Option<LifecycleResult>),
    /// Completing it with that result failed; Auto Scaling ends it by its timeout.
    Failed(LifecycleResult),
}

impl HookStatus {
    /// After completing it came to that.
    pub(crate) fn after(completion: Completion, result: LifecycleResult) -> Self {
        match completion {
            Completion::Completed => Self::Completed(result),
            Completion::AlreadyOver => Self::AlreadyOver(Some(result)),
        }
    }

    /// What the receipt says of that hook.
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
    /// Notes that a step is done.
    pub(crate) fn step(&mut self, step: StepName, at: Timestamp) {
        self.steps.push((step, at));
    }

    /// Notes which node it is about; so does the log's span.
    pub(crate) fn found(&mut self, node: &str) {
        span::node(node);
        self.node = Some(node.to_owned());
    }

    /// Notes what is wrong, and tells the log.
    pub(crate) fn warn(&mut self, warning: String) {
        tracing::warn!("{warning}");
        self.warnings.push(warning);
    }

    /// Notes the claim on the node, and when it was made, if it was.
    pub(crate) fn claimed(&mut self, node: &ClaimedNode, at: Timestamp) {
        let ClaimedNode { claim, client } = node;
        self.found(&claim.node);
        if claim.denied().is_none() {
            self.step(StepName::Claimed, at);
        }
        self.claim = Some(claim.clone());
        self.client = Some(client.clone());
    }

    /// The pods that are left for a later invocation: those of an earlier one, if this one has listed none.
    pub(crate) fn remaining(&self, history: &History) -> Vec<PodRecord> {
        if self.pods.is_empty() {
            return history.remaining.clone();
        }
        let left = self.pods.iter().filter(|pod| matches!(pod.fate, Fate::Lost | Fate::Remaining));
        let grace = |pod: &PodRecord| Duration::from_secs(pod.grace_s);
        left.map(|pod| PodRecord::of(pod.pod.clone(), pod.uid.clone(), Fate::Remaining, grace(pod))).collect()
    }

    /// An invocation in short, until now, for those that go on with the notice.
    pub(crate) fn in_short(&self, notice: &Notice, invocation: &Invocation) -> Earlier {
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
