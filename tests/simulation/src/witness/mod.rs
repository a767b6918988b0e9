//! What must hold, whatever happens. Each witness sees every fact, keeps what it needs of them, and says what does not hold.
//!
//! * `deadline`: when an instance goes by its notice
//! * `pods`: how pods are requested to leave
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

use std::fmt;

use jiff::SignedDuration;

use crate::aws::Aws;
use crate::clock::Clock;
use crate::cluster::Cluster;
use crate::fact::Fact;
use crate::lambda::{AttemptId, Lambda};
use crate::plan::Plan;
use deadline::Deadline;

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
    /// Of planned drains no more go on at once than the limit, and each is over when its maintenance starts.
    PaceIsKept,
    /// Nothing panics.
    NoPanic,
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
    ]
}

/// What does not hold.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) broken: Vec<String>,
}

impl Verdict {
    /// This does not hold.
    pub(crate) fn broken(&mut self, invariant: Invariant, how: &str) {
        self.broken.push(format!("{invariant:?}: {how}"));
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
