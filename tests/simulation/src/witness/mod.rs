//! Laws that hold in every world. Each witness observes every fact, and reports violations.
//!
//! * `past`: facts so far
//! * `deadline`: deadline of a notice, computed apart from the product
//! * `scope`: clusters, nodes and pods that an invocation may change
//! * `pods`: evictions and deletions
//! * `progress`: overdue work
//! * `hooks`: lifecycle hooks
//! * `nodes`: changes of nodes
//! * `replacement`: replacements of instances
//! * `pace`: planned drains at once
//! * `invocations`: ends of invocations, and receipts
//! * `sometimes`: counters

mod deadline;
mod hooks;
mod invocations;
mod nodes;
mod pace;
mod past;
mod pods;
mod progress;
mod replacement;
mod scope;
mod sometimes;

use std::fmt;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::aws::Aws;
use crate::clock::Clock;
use crate::cluster::Clusters;
use crate::fact::Fact;
use crate::lambda::{Attempt, AttemptId, Lambda};
use crate::plan::{NodeId, Plan};
use deadline::{Deadline, Termination, seconds};
pub(crate) use past::Past;
pub use sometimes::Counts;
pub(crate) use sometimes::changes;
#[cfg(test)]
pub(crate) use sometimes::never;

/// The laws.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Invariant {
    /// A hook is completed when its node is empty or its longest wait is over, and not before.
    HookNotBeforeEmpty,
    /// A hook is not completed while a volume is attached that has the time to be detached.
    VolumesAwaited,
    /// A hook that the function can complete does not expire.
    HookAnswered,
    /// An invocation completes a hook once.
    HookOnce,
    /// A pod is deleted only after its eviction failed, and at its last safe moment. Evictions respect budgets: the API server
    /// checks them.
    DeletedWhenDue,
    /// A deleted pod has the condition `DisruptionTarget`, so that its Job does not count a failure.
    JobIsInformed,
    /// A pod that its budget blocks is evicted some time before it is deleted.
    EvictedBeforeForced,
    /// The grace period of a request is at most the pod's own and the time left, and not less than both.
    GraceIsRight,
    /// An invocation changes the cluster, node and pods of its instance only, pods by their UIDs, in a served cluster.
    OwnScope,
    /// A dry run changes nothing, and no invocation changes a node that is opted out, Karpenter's or left to EKS.
    LeftAlone,
    /// Labels, annotations, taints and cordons of others stay.
    OthersUntouched,
    /// A notice that the instance runs gives back no node that was claimed for a later notice.
    GoingNotGivenBack,
    /// In the end, a node in use has no claim, cordon, label or taint of the product.
    NothingLeft,
    /// An invocation ends with a receipt.
    ReceiptIsWritten,
    /// A pod that a receipt calls gone is gone; a pod that it calls lost was there.
    ReceiptIsTrue,
    /// No invocation times out, and no drain outlasts its window.
    EndsInTime,
    /// A skipped pod stays. A last pod does not leave before others, unless it is due.
    OrderIsKept,
    /// At most five planned drains run at once, and each ends before its maintenance starts.
    PaceIsKept,
    /// A pod that may leave is requested to, soon.
    RequestedSoon,
    /// A blocked pod is deleted soon after its last safe moment.
    ForcedInTime,
    /// A pod is requested to leave again soon after its budget allows it.
    BudgetIsUsed,
    /// A drain of an empty node completes its hook, or ends, soon.
    EndsSoon,
    /// Each notice has a receipt, and each continuation begins soon.
    AllEnds,
    /// Requests of an invocation and for a pod, rounds of evictions, and invocations of a notice have an upper bound.
    WorkIsBounded,
    /// An instance is replaced at most once.
    ReplacedOnce,
    /// EC2 confirms the interruption of each instance that is replaced.
    ReplacedWhenConfirmed,
    /// Replacements never decrement the desired capacity.
    CapacityIsKept,
    /// Panics never happen.
    NoPanic,
}

/// Prefix of the counters of excuses.
pub(crate) const EXCUSED: &str = "excused: ";

/// Time until all is in order after an outage.
const SETTLES_WITHIN: Duration = Duration::from_secs(16);

pub(crate) trait Witness: fmt::Debug + Send {
    /// `facts` include this fact.
    fn observe(&mut self, fact: &Fact, facts: &Facts<'_>, verdict: &mut Verdict);
}

pub(crate) fn witnesses() -> Vec<Box<dyn Witness>> {
    vec![
        Box::<scope::Scope>::default(),
        Box::<pods::LeavingPods>::default(),
        Box::<hooks::Hooks>::default(),
        Box::<nodes::Nodes>::default(),
        Box::<pace::Pace>::default(),
        Box::<replacement::Replacements>::default(),
        Box::<invocations::Invocations>::default(),
        Box::<progress::Progress>::default(),
        Box::<sometimes::Sometimes>::default(),
    ]
}

/// Violations and counters of a world.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) violations: Vec<String>,
    pub(crate) counts: Counts,
}

impl Verdict {
    pub(crate) fn violate(&mut self, invariant: Invariant, details: &str) {
        self.violations.push(format!("{invariant:?}: {details}"));
    }

    pub(crate) fn count(&mut self, event: impl Into<String>) {
        *self.counts.entry(event.into()).or_default() += 1;
    }

    /// Returns `true` if the law holds or has an excuse. Excuses are counted once a world: frequent ones are no exceptions.
    fn excuse(&mut self, excuse: &str, holds: bool, is_excused: bool) -> bool {
        if !holds && is_excused {
            self.counts.insert(format!("{EXCUSED}{excuse}"), 1);
        }
        holds || is_excused
    }

    fn check(&mut self, invariant: Invariant, holds: bool, details: impl FnOnce() -> String) {
        if !holds {
            self.violate(invariant, &details());
        }
    }
}

/// Plan, past and present of a world.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) clock: Clock,
    pub(crate) clusters: &'a Clusters,
    pub(crate) aws: &'a Aws,
    pub(crate) lambda: &'a Lambda,
    pub(crate) past: &'a Past,
}

impl Facts<'_> {
    /// Largest difference of the function's clock.
    fn skew(&self) -> SignedDuration {
        SignedDuration::from_millis(self.plan.skew_ms + 100)
    }

    /// End of the last outage on the way of an attempt to its API server and to AWS. A call may have hung until its timeout.
    fn calm_since(&self, attempt: AttemptId) -> Timestamp {
        let (elapsed, own) = (self.clock.elapsed(), self.node(attempt).map(|node| node.cluster));
        let begun = self.plan.outages.iter().filter(|outage| outage.from <= elapsed);
        let begun = begun.filter(|outage| outage.cluster.is_none() || outage.cluster == own);
        let over = begun.map(|outage| self.clock.at(self.clock.instant(outage.until + SETTLES_WITHIN)));
        over.max().unwrap_or(Timestamp::MIN)
    }

    /// Returns `true` if an instance has a node that reports and is not left alone.
    fn is_in_use(&self, instance: &str) -> bool {
        let node = self.aws.node_of(instance).filter(|node| self.plan.serves(node.cluster));
        let Some(node) = node.and_then(|node| self.clusters.node(node)) else { return false };
        let is_opted_out = node["metadata"]["labels"].get("spillway/ignore").is_some();
        self.clusters.reports(instance)
            && !is_opted_out
            && !self.plan.is_karpenters(instance)
            && !self.plan.is_dry_run()
    }

    /// Returns `true` if the node of an instance counts as dead: removed, or missed for a minute.
    fn is_dead(&self, instance: &str) -> bool {
        let missed = self.past.instance(instance).missed;
        let is_over = |since: Timestamp| since + SignedDuration::from_mins(1) <= self.clock.now();
        !self.clusters.reports(instance) && missed.is_none_or(is_over)
    }

    /// End of the time in which an attempt has to drain its node; `None` if it does not have to.
    fn drains_until(&self, id: AttemptId) -> Option<Timestamp> {
        let attempt = self.lambda.attempt(id);
        let (notice, deadline) = (attempt.notice(), self.deadline(id)?);
        let Deadline { sent, termination, .. } = deadline;
        if self.is_left_to_eks(id) {
            return None;
        }
        match (notice["detail-type"].as_str()?, termination) {
            ("EC2 Spot Instance Interruption Warning", Termination::At(goes)) => Some(goes),
            ("EC2 Instance-terminate Lifecycle Action", Termination::AtTheLatest(goes)) => {
                let token = notice["detail"]["LifecycleActionToken"].as_str()?;
                let waits = self.aws.actions()[token].result.is_none();
                waits.then_some(goes)
            }
            ("AWS Health Event", Termination::At(starts)) => {
                let is_closed = |attempt: &Attempt| attempt.notice()["detail"]["statusCode"] == "closed";
                let is_called_off = self.lambda.about(attempt.instance.as_deref()?).any(is_closed);
                // No drain is postponed within ten minutes of its start.
                let lead = seconds(self.plan, "SPILLWAY_MAINTENANCE_LEAD_S").min(SignedDuration::from_mins(10));
                (starts - lead <= attempt.began && !is_called_off).then_some(starts)
            }
            ("EC2 Instance Rebalance Recommendation", _) => {
                let drains = self.plan.setting("SPILLWAY_CORDON_ON") != Some("rebalance");
                drains.then(|| sent + SignedDuration::from_hours(1))
            }
            ("EC2 Instance State-change Notification", _) => {
                let is_going = ["stopping", "shutting-down"].iter().any(|state| notice["detail"]["state"] == **state);
                is_going.then_some(sent + SignedDuration::from_mins(10))
            }
            _ => None,
        }
    }

    /// Returns `true` if a node is left to EKS for this notice.
    fn is_left_to_eks(&self, id: AttemptId) -> bool {
        let attempt = self.lambda.attempt(id);
        let is_managed = attempt.instance.as_deref().is_some_and(|instance| self.plan.is_managed(instance));
        let detail_type = attempt.notice()["detail-type"].as_str().unwrap_or_default();
        let drained_by_eks =
            ["EC2 Spot Instance Interruption Warning", "EC2 Instance Rebalance Recommendation"].contains(&detail_type);
        is_managed
            && match self.plan.setting("SPILLWAY_MANAGED_NODE_GROUPS") {
                Some("drain") => false,
                Some("off") => true,
                _ => drained_by_eks,
            }
    }

    fn deadline(&self, attempt: AttemptId) -> Option<Deadline> {
        let attempt = self.lambda.attempt(attempt);
        let own = Deadline::of(attempt.notice(), attempt.began, self.plan)?;
        Some(self.joined_deadline(attempt).unwrap_or(own))
    }

    /// Deadline of the spot claim that a hook's notice joins, if the function replaces instances.
    fn joined_deadline(&self, attempt: &Attempt) -> Option<Deadline> {
        let is_of = |attempt: &Attempt, detail_type| attempt.notice()["detail-type"] == detail_type;
        if !self.plan.replaces() || !is_of(attempt, "EC2 Instance-terminate Lifecycle Action") {
            return None;
        }
        let mut earlier = self.lambda.about(attempt.instance.as_deref()?);
        let spot =
            earlier.find(|one| one.began < attempt.began && is_of(one, "EC2 Spot Instance Interruption Warning"));
        Deadline::of(spot?.notice(), attempt.began, self.plan)
    }

    fn node(&self, attempt: AttemptId) -> Option<&NodeId> {
        self.aws.node_of(self.instance(attempt)?)
    }

    fn instance(&self, attempt: AttemptId) -> Option<&str> {
        self.lambda.attempt(attempt).instance.as_deref()
    }
}
