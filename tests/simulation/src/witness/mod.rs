//! What must hold, whatever happens. Each witness sees every fact, keeps what it needs of them, and says what does not hold.
//!
//! * `deadline`: when an instance goes by its notice
//! * `pods`: how pods are requested to leave
//! * `progress`: that what is owed is done soon
//! * `hooks`: when hooks are answered
//! * `nodes`: what is changed on nodes
//! * `pace`: how many nodes are drained at once
//! * `sometimes`: what has happened at all
//! * `invocations`: how invocations end, and with which receipt

mod deadline;
mod hooks;
mod invocations;
mod nodes;
mod pace;
mod pods;
mod progress;
mod sometimes;

use std::fmt;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use spillway_contract::node::is_cordoned;

use crate::aws::Aws;
use crate::clock::Clock;
use crate::cluster::Clusters;
use crate::fact::Fact;
use crate::lambda::{Attempt, AttemptId, Lambda};
use crate::plan::{NodeId, Plan};
use deadline::{Deadline, Termination, seconds};
pub(crate) use sometimes::changes;
pub use sometimes::{Counts, SOMETIMES};

/// What must hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Invariant {
    /// A hook is completed when its node is empty or its window over, and not before.
    HookNotBeforeEmpty,
    /// A hook is not completed while a volume is attached that has the time to be detached.
    VolumesAwaited,
    /// A hook that the function could have answered is not left to its timeout.
    HookAnswered,
    /// An invocation that has completed a hook does not complete it again.
    HookOnce,
    /// Only a pod whose eviction came to nothing is deleted, and not before its last safe moment: before that nothing of ours takes
    /// more than a budget allows, because the API server asks it about each eviction.
    DeletedWhenDue,
    /// A pod that is deleted has the condition by which its Job knows that it has not failed.
    JobIsTold,
    /// A pod that its budget blocks was asked to leave some time before it is deleted.
    AskedBeforeForced,
    /// No pod is given more grace than it asks for or has, nor less than there is time for.
    GraceIsRight,
    /// Only the cluster of the notice's instance is written to, and only if it is to be served.
    OwnCluster,
    /// Only pods of the notice's node are touched, by their UIDs.
    OwnPods,
    /// What others put on a node stays, and so does what they took off.
    OthersUntouched,
    /// A node that is opted out or Karpenter's is not patched, nor are its pods requested to leave.
    OptedOutUntouched,
    /// A dry run changes no node, asks no pod to leave, and completes no hook.
    DryRunTouchesNothing,
    /// That an instance runs gives back no node that was claimed for a later notice.
    GoingNotGivenBack,
    /// When all is quiet, a node that is in use has nothing of ours.
    NothingLeft,
    /// An invocation ends with a receipt.
    ReceiptIsWritten,
    /// A pod that a receipt calls gone is gone; one that it calls lost was there.
    ReceiptIsTrue,
    /// No invocation is cut off by Lambda, and no drain outlasts its window.
    EndsInTime,
    /// A pod is requested to leave so often at most.
    RequestsAreBounded,
    /// A pod that asks to be skipped is left alone; one that asks to be last does not leave before others, unless it must.
    OrderIsKept,
    /// For one notice the pods of an app that return are evicted in a few rounds.
    ReturnsAreBounded,
    /// Of planned drains no more go on at once than the limit, and each is over when its maintenance starts.
    PaceIsKept,
    /// A pod that may leave is requested to, soon.
    AskedSoon,
    /// A blocked pod is deleted at its last safe moment, and not much later.
    ForcedInTime,
    /// While a budget allows it, one of its pods is requested to leave again, soon.
    BudgetIsUsed,
    /// A drain whose node is empty completes its hook, or ends, soon.
    EndsSoon,
    /// What is begun ends: each notice has a receipt, and what is to be continued is.
    AllEnds,
    /// An invocation makes so many requests at most, and a notice takes so many invocations.
    WorkIsBounded,
    /// Nothing panics.
    NoPanic,
}

/// What an excuse is counted as begins so.
pub const EXCUSED: &str = "excused: ";

/// How long it takes until all is in order again after an outage.
const SETTLES_WITHIN: Duration = Duration::from_secs(16);

/// Sees what happens.
pub(crate) trait Witness: fmt::Debug + Send {
    /// Something has happened; `facts` are as they are by now.
    fn sees(&mut self, fact: &Fact, facts: &Facts<'_>, verdict: &mut Verdict);
}

/// All witnesses.
pub(crate) fn witnesses() -> Vec<Box<dyn Witness>> {
    vec![
        Box::<pods::LeavingPods>::default(),
        Box::<hooks::Hooks>::default(),
        Box::<nodes::Nodes>::default(),
        Box::<pace::Pace>::default(),
        Box::<invocations::Invocations>::default(),
        Box::<progress::Progress>::default(),
        Box::<sometimes::Sometimes>::default(),
    ]
}

/// Whether a patch uncordons its node.
fn is_uncordoned(before: &Value, after: &Value) -> bool {
    is_cordoned(before) && !is_cordoned(after)
}

/// What does not hold.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) broken: Vec<String>,
    /// How often each thing has happened.
    pub(crate) seen: Counts,
}

impl Verdict {
    /// This does not hold.
    pub(crate) fn broken(&mut self, invariant: Invariant, how: &str) {
        self.broken.push(format!("{invariant:?}: {how}"));
    }

    /// This has happened.
    pub(crate) fn count(&mut self, what: impl Into<String>) {
        *self.seen.entry(what.into()).or_default() += 1;
    }

    /// What does not hold is excused, if it is, and counted once a world: what is excused often is no exception.
    fn excuses(&mut self, excuse: &str, holds: bool, is_excused: bool) -> bool {
        if !holds && is_excused {
            self.seen.insert(format!("{EXCUSED}{excuse}"), 1);
        }
        holds || is_excused
    }

    /// Whether this holds is known.
    fn holds(&mut self, invariant: Invariant, holds: bool, how: impl FnOnce() -> String) {
        if !holds {
            self.broken(invariant, &how());
        }
    }
}

/// What is so.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) clock: Clock,
    pub(crate) clusters: &'a Clusters,
    pub(crate) aws: &'a Aws,
    pub(crate) lambda: &'a Lambda,
}

impl Facts<'_> {
    /// By how much the function's clock may differ.
    fn skew(&self) -> SignedDuration {
        SignedDuration::from_millis(self.plan.skew_ms + 100)
    }

    /// Since when nothing has been out of order on the way of an attempt to its API server and to AWS: a call may have hung until its
    /// time was up.
    fn calm_since(&self, attempt: AttemptId) -> Timestamp {
        let (elapsed, own) = (self.clock.elapsed(), self.node(attempt).map(|node| node.cluster));
        let begun = self.plan.outages.iter().filter(|outage| outage.from <= elapsed);
        let begun = begun.filter(|outage| outage.cluster.is_none() || outage.cluster == own);
        let over = begun.map(|outage| self.clock.at(self.clock.instant(outage.until + SETTLES_WITHIN)));
        over.max().unwrap_or(Timestamp::MIN)
    }

    /// Whether an instance has a node whose kubelet reports, and which is not to be left alone, nor its cluster.
    fn is_in_use(&self, instance: &str) -> bool {
        let node = self.aws.node_of(instance).filter(|node| self.plan.serves(node.cluster));
        let Some(node) = node.and_then(|node| self.clusters.node(node)) else { return false };
        let is_opted_out = node["metadata"]["labels"].get("spillway/ignore").is_some();
        self.clusters.reports(instance)
            && !is_opted_out
            && !self.plan.is_karpenters(instance)
            && !self.plan.is_dry_run()
    }

    /// Until when an attempt has to drain its node, if it has to now.
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
                // Within ten minutes of its start no drain is put off.
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

    /// Whether a node is left to EKS, for such a notice or for each.
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

    /// When the instance goes that an attempt is about.
    fn deadline(&self, attempt: AttemptId) -> Option<Deadline> {
        let attempt = self.lambda.attempt(attempt);
        Deadline::of(attempt.notice(), attempt.began, self.plan)
    }

    /// The node that an attempt is about.
    fn node(&self, attempt: AttemptId) -> Option<&NodeId> {
        self.aws.node_of(self.instance(attempt)?)
    }

    /// The instance that an attempt is about.
    fn instance(&self, attempt: AttemptId) -> Option<&str> {
        self.lambda.attempt(attempt).instance.as_deref()
    }
}
