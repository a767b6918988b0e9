//! What must hold, whatever happens. Each witness sees every fact, keeps what it needs of them, and says what does not hold.
//!
//! * `deadline`: when an instance goes by its notice
//! * `pods`: how pods are requested to leave
//! * `progress`: that they are, and soon
//! * `seen`: what has happened at all
//! * `hooks`: when hooks are answered
//! * `nodes`: what is changed on nodes
//! * `pace`: how many nodes are drained at once
//! * `invocations`: how invocations end, and with which receipt

mod deadline;
mod hooks;
mod invocations;
mod nodes;
mod pace;
mod pods;
mod progress;
mod seen;

use std::fmt;

use std::time::Duration;

use jiff::SignedDuration;

use crate::aws::Aws;
use crate::clock::Clock;
use crate::cluster::Cluster;
use crate::fact::Fact;
use crate::lambda::{Attempt, AttemptId, Lambda};
use crate::plan::Plan;
use deadline::{Deadline, Termination, seconds};
use jiff::Timestamp;
pub use seen::{Counts, SOMETIMES};
use serde_json::Value;

/// What must hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Invariant {
    /// A hook is completed when its node is empty or its window over, and not before.
    HookNotBeforeEmpty,
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
    /// Only pods of the notice's node are touched, by their UIDs.
    OwnPods,
    /// What others put on a node stays, and so does what they took off.
    OthersUntouched,
    /// A node that is opted out is not patched.
    OptedOutUntouched,
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
    /// For one notice the pods of an app that its controller puts back are evicted three times each at most.
    PutBackIsLeft,
    /// A pod that may leave is requested to, and each of those that go last when its turn comes.
    AskedSoon,
    /// A pod that something blocks is deleted when that is due, and not long after.
    ForcedInTime,
    /// While a budget allows it, another of its pods leaves.
    BudgetIsUsed,
    /// A drain whose node is empty ends.
    EndsSoon,
    /// All that is begun ends.
    AllEnds,
    /// What is to be continued is.
    Continues,
    /// A notice takes so many invocations at most, and an invocation so many requests.
    WorkIsBounded,
    /// Of planned drains no more go on at once than the limit, and each is over when its maintenance starts.
    PaceIsKept,
    /// Nothing panics.
    NoPanic,
}

/// How long it takes until all is in order again when the API server or AWS is: a call may hang until its time is up.
const SETTLES_WITHIN: Duration = Duration::from_secs(16);

/// What kind of notice an event is that may have a node drained.
fn kind(notice: &Value) -> Option<&'static str> {
    match (notice["detail-type"].as_str()?, notice["detail"]["state"].as_str()) {
        ("EC2 Spot Instance Interruption Warning", _) => Some("spot"),
        ("EC2 Instance-terminate Lifecycle Action", _) => Some("terminate"),
        ("EC2 Instance Rebalance Recommendation", _) => Some("rebalance"),
        ("EC2 Instance State-change Notification", Some("stopping" | "shutting-down")) => Some("state-change"),
        ("AWS Health Event", _) if notice["detail"]["statusCode"] == "upcoming" => Some("maintenance"),
        _ => None,
    }
}

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
        Box::<seen::Seen>::default(),
    ]
}

/// What does not hold.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) broken: Vec<String>,
    /// What has happened, how often.
    pub(crate) seen: Counts,
    /// The most that there was of something.
    pub(crate) most: Counts,
}

impl Verdict {
    /// This does not hold.
    pub(crate) fn broken(&mut self, invariant: Invariant, how: &str) {
        self.broken.push(format!("{invariant:?}: {how}"));
    }

    /// So much there was of something, and the most of it is told.
    fn most(&mut self, what: &str, count: usize) {
        let most = self.most.entry(what.to_owned()).or_default();
        *most = (*most).max(u64::try_from(count).unwrap_or(u64::MAX));
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
    pub(crate) cluster: &'a Cluster,
    pub(crate) aws: &'a Aws,
    pub(crate) lambda: &'a Lambda,
}

impl Facts<'_> {
    /// By how much the function's clock may differ.
    fn skew(&self) -> SignedDuration {
        SignedDuration::from_millis(self.plan.skew_ms + 100)
    }

    /// The first time at which nothing has been out of order for so long, if it is not earlier than that.
    fn calm(&self, at: Timestamp, lasts: SignedDuration) -> Timestamp {
        let mut at = at;
        let mut outages: Vec<_> = self.plan.outages.iter().collect();
        outages.sort_by_key(|outage| outage.from);
        for outage in outages {
            let [from, until] =
                [outage.from, outage.until + SETTLES_WITHIN].map(|then| self.clock.at(self.clock.instant(then)));
            if from <= at && at - lasts < until {
                at = until + lasts;
            }
        }
        at
    }

    /// Whether an instance has a node whose kubelet reports, and which is not to be left alone.
    fn is_in_use(&self, instance: &str) -> bool {
        let node = self.aws.node_of(instance).and_then(|node| self.cluster.node(node));
        let is_opted_out = node.is_some_and(|node| node["metadata"]["labels"].get("spillway/ignore").is_some());
        self.cluster.reports(instance) && !is_opted_out
    }

    /// Whether the settings let an attempt do anything about its instance.
    fn acts_on(&self, attempt: AttemptId) -> bool {
        let instance = self.instance(attempt).unwrap_or_default();
        !self.plan.is_dry_run() && self.plan.acts_on(instance, self.kind(attempt))
    }

    /// What kind of notice an attempt is about.
    fn kind(&self, attempt: AttemptId) -> Option<&'static str> {
        kind(self.lambda.attempt(attempt).notice())
    }

    /// Whether an attempt is to drain a node: by its notice, and by its time.
    fn drains(&self, attempt: AttemptId) -> bool {
        let Some(of) = self.lambda.attempt(attempt).instance.as_deref() else { return false };
        if !self.kind(attempt).is_some_and(|kind| self.plan.drains_on(kind)) || !self.acts_on(attempt) {
            return false;
        }
        match (self.kind(attempt), self.deadline(attempt).map(|deadline| deadline.termination)) {
            (_, None) | (None, _) => false,
            (Some("maintenance"), Some(Termination::At(starts))) => {
                let is_closed = |attempt: &Attempt| attempt.notice()["detail"]["statusCode"] == "closed";
                let begins = starts - seconds(self.plan, "SPILLWAY_MAINTENANCE_LEAD_S");
                begins + self.skew() <= self.lambda.attempt(attempt).began && !self.lambda.about(of).any(is_closed)
            }
            (Some("maintenance"), Some(_)) => false,
            // What is past its time, EC2 may have done already.
            (Some("spot"), Some(termination)) => matches!(termination, Termination::At(_)),
            (Some("terminate"), _) => self.lambda.attempt(attempt).notice()["detail"]["LifecycleActionToken"]
                .as_str()
                .is_some_and(|token| self.aws.actions()[token].result.is_none()),
            (Some(_), _) => true,
        }
    }

    /// When the instance goes that an attempt is about.
    fn deadline(&self, attempt: AttemptId) -> Option<Deadline> {
        let attempt = self.lambda.attempt(attempt);
        Deadline::of(attempt.notice(), attempt.began, self.plan)
    }

    /// The instance that an attempt is about.
    fn instance(&self, attempt: AttemptId) -> Option<&str> {
        self.lambda.attempt(attempt).instance.as_deref()
    }
}
