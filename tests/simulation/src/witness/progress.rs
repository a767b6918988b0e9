//! Overdue work: while its instance runs and no outage disturbs it, a drain does soon what can be done.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use super::deadline::Deadline;
use super::{Facts, Invariant, Verdict, Witness};
use crate::cluster::Pod;
use crate::fact::{Fact, LeaveRequest};
use crate::lambda::{AttemptId, Ending};
use crate::plan::{Annotation, App};

/// Longest time to the begin of a drain: EC2 may lag behind its own notice by twenty seconds.
const BEGINS_WITHIN: SignedDuration = SignedDuration::from_secs(30);
/// Longest time for a task: a watch lags by three seconds, and a budget is tried every five.
const DONE_WITHIN: SignedDuration = SignedDuration::from_secs(12);
/// Age from which a drain knows a pod.
const KNOWN_AFTER: SignedDuration = SignedDuration::from_secs(10);
/// Period of the checks.
const CHECKED_EVERY: SignedDuration = SignedDuration::from_millis(500);

#[derive(Debug, Default)]
pub(super) struct Progress {
    drains: BTreeSet<AttemptId>,
    /// Tasks of the drains, with the time at which each could first be done.
    tasks: BTreeMap<(AttemptId, Task), Timestamp>,
    checked: Option<Timestamp>,
}

/// A task of a drain.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Task {
    Request(String),
    /// Another request for one of an app's pods, because its budget allows it.
    UseOfBudget(usize),
    /// Deletion of a blocked pod.
    Force(String),
    /// End of the drain of an empty node.
    End,
}

impl Task {
    fn invariant(&self) -> Invariant {
        match self {
            Self::Request(_) => Invariant::RequestedSoon,
            Self::UseOfBudget(_) => Invariant::BudgetIsUsed,
            Self::Force(_) => Invariant::ForcedInTime,
            Self::End => Invariant::EndsSoon,
        }
    }
}

impl Witness for Progress {
    fn observe(&mut self, fact: &Fact, facts: &Facts<'_>, verdict: &mut Verdict) {
        match fact {
            Fact::AttemptBegan { id, .. } => {
                self.drains.insert(*id);
            }
            Fact::LeaveRequested { request: LeaveRequest { uid: Some(uid), .. }, .. } => {
                let app = facts.clusters.pod(uid).map(|pod| pod.app);
                self.tasks.retain(|(_, task), _| !matches!(task, Task::UseOfBudget(of) if Some(*of) == app));
            }
            Fact::AttemptEnded { id, ending } => self.ends(*id, ending, facts, verdict),
            _ => {}
        }
        let now = facts.clock.now();
        let changes = matches!(fact, Fact::PodDeleted { .. } | Fact::PodGone { .. });
        if changes || self.checked.is_none_or(|checked| checked + CHECKED_EVERY <= now) {
            self.checked = Some(now);
            self.check(now, facts, verdict);
        }
    }
}

impl Progress {
    fn check(&mut self, now: Timestamp, facts: &Facts<'_>, verdict: &mut Verdict) {
        let before = std::mem::take(&mut self.tasks);
        for id in &self.drains {
            let begins = facts.lambda.attempt(*id).began + facts.skew() + BEGINS_WITHIN;
            for task in tasks(*id, facts) {
                let key = (*id, task);
                let since = before.get(&key).copied().unwrap_or(now);
                let due = since.max(facts.calm_since(*id)).max(begins - DONE_WITHIN) + DONE_WITHIN;
                verdict
                    .check(key.1.invariant(), now <= due, || format!("{id} leaves {:?} undone since {since}", key.1));
                self.tasks.insert(key, since);
            }
        }
    }

    /// A drain that ends as drained has no continuation.
    fn ends(&mut self, id: AttemptId, ending: &Ending, facts: &Facts<'_>, verdict: &mut Verdict) {
        let is_over = matches!(ending, Ending::Succeeded(ending) if ending == "Drained");
        for task in tasks(id, facts).into_iter().filter(|task| is_over && matches!(task, Task::Request(_))) {
            verdict.violate(task.invariant(), &format!("{id} ends and leaves {task:?} undone"));
        }
        self.drains.remove(&id);
        self.tasks.retain(|(by, _), _| *by != id);
    }
}

/// Tasks of a drain that can be done now.
fn tasks(id: AttemptId, facts: &Facts<'_>) -> Vec<Task> {
    let (now, instance) = (facts.clock.now(), facts.instance(id).unwrap_or_default());
    let is_wanted = facts.drains_until(id).is_some_and(|until| now < until) && facts.is_in_use(instance);
    if !is_wanted || facts.past.instance(instance).is_uncordoned() {
        return Vec::new();
    }
    let Some(node) = facts.aws.node_of(instance) else { return Vec::new() };
    let apps = &facts.plan.apps;
    let there = facts.clusters.pods_on(node).filter(|pod| !apps[pod.app].stays() && !pod.has_stopped);
    let there: Vec<&Pod> = there.collect();
    if there.is_empty() {
        return if facts.clusters.keeps_volumes(node) { Vec::new() } else { vec![Task::End] };
    }
    let past = |pod: &Pod| facts.past.pods.get(&pod.uid);
    let is_known = |pod: &Pod| past(pod).is_none_or(|past| past.bound + KNOWN_AFTER <= now);
    let is_requested = |pod: &Pod| past(pod).is_some_and(|past| past.is_requested);
    // A drain that begins late, or claims its node late, has its window from then on.
    let began = facts.lambda.attempt(id).began.max(facts.calm_since(id)) + BEGINS_WITHIN;
    let deadline = facts.deadline(id).filter(|deadline| deadline.known().is_some());
    let deadline = deadline.map(|deadline| Deadline { sent: deadline.sent.max(began), ..deadline });
    let is_blocked = |pod: &Pod| pod.deletion.is_none() && is_requested(pod);
    let is_turn = |app: &App| match Tier::of(app) {
        Tier::Ordinary => true,
        Tier::Critical => there.iter().all(|pod| Tier::of(&apps[pod.app]) != Tier::Ordinary || is_blocked(pod)),
        Tier::Last => there.iter().all(|pod| Tier::of(&apps[pod.app]) == Tier::Last),
    };
    let mut tasks = Vec::new();
    // A pod that returns may stay.
    let may_stay = |pod: &Pod| apps[pod.app].tolerates || facts.plan.may_stay_open();
    for pod in there.iter().filter(|pod| pod.deletion.is_none() && !may_stay(pod) && is_known(pod)) {
        let app = &apps[pod.app];
        if deadline.and_then(|deadline| deadline.forced_from(app)).is_some_and(|due| due + facts.skew() <= now) {
            tasks.push(Task::Force(pod.uid.clone()));
        }
        let is_free = app.annotation.is_none_or(|annotation| annotation == Annotation::Last);
        if is_free && is_turn(app) {
            let is_allowed = pod.is_ready && facts.clusters.allows(pod.app);
            if !is_requested(pod) {
                tasks.push(Task::Request(pod.uid.clone()));
            } else if is_allowed {
                tasks.push(Task::UseOfBudget(pod.app));
            }
        }
    }
    tasks
}

/// Order of pods that leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tier {
    Ordinary,
    Critical,
    Last,
}

impl Tier {
    fn of(app: &App) -> Self {
        match app.annotation {
            Some(Annotation::Last) => Self::Last,
            _ if app.is_critical => Self::Critical,
            _ => Self::Ordinary,
        }
    }
}
