//! That a drain moves: while its instance runs and nothing is out of order, what is owed is done soon.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use super::deadline::Deadline;
use super::{Facts, Invariant, Verdict, Witness, is_uncordoned};
use crate::cluster::Pod;
use crate::fact::{Fact, LeaveRequest};
use crate::lambda::{AttemptId, Ending};
use crate::plan::{Annotation, App, Command};

/// How long it takes to begin: EC2 may be behind its own notice for twenty seconds.
const BEGINS_WITHIN: SignedDuration = SignedDuration::from_secs(30);
/// How long it takes to do what is owed: a watch tells of it three seconds late, and a budget is tried every five.
const DONE_WITHIN: SignedDuration = SignedDuration::from_secs(12);
/// A pod that came so recently need not be known.
const KNOWN_AFTER: SignedDuration = SignedDuration::from_secs(10);
/// How often it is looked.
const LOOKS_EVERY: SignedDuration = SignedDuration::from_millis(500);

/// What is owed, and since when.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// The drains that are at work.
    drains: BTreeSet<AttemptId>,
    owed: BTreeMap<(AttemptId, Owed), Timestamp>,
    /// The pods that were requested to leave, by whichever attempt.
    asked: BTreeSet<String>,
    /// When each pod came to its node.
    came: BTreeMap<String, Timestamp>,
    /// The instances whose nodes were uncordoned, by a person or because they were given back: what comes then may stay.
    uncordoned: BTreeSet<String>,
    looked: Option<Timestamp>,
}

/// What a drain owes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Owed {
    /// That a pod is requested to leave.
    Request(String),
    /// That one of an app's pods is requested to leave again, as its budget allows it.
    UseOfBudget(usize),
    /// That a pod is deleted although something blocks it: its last safe moment has come.
    Force(String),
    /// That a drain whose node is empty completes its hook, or ends.
    End,
}

impl Owed {
    fn invariant(&self) -> Invariant {
        match self {
            Self::Request(_) => Invariant::AskedSoon,
            Self::UseOfBudget(_) => Invariant::BudgetIsUsed,
            Self::Force(_) => Invariant::ForcedInTime,
            Self::End => Invariant::EndsSoon,
        }
    }
}

impl Witness for Progress {
    fn sees(&mut self, fact: &Fact, facts: &Facts<'_>, verdict: &mut Verdict) {
        match fact {
            Fact::AttemptBegan { id, .. } => {
                self.drains.insert(*id);
            }
            Fact::PodBound { uid, .. } => {
                self.came.entry(uid.clone()).or_insert(facts.clock.now());
            }
            Fact::LeaveRequested { request: LeaveRequest { uid: Some(uid), .. }, .. } => {
                self.asked.insert(uid.clone());
                let app = facts.clusters.pod(uid).map(|pod| pod.app);
                self.owed.retain(|(_, owed), _| !matches!(owed, Owed::UseOfBudget(of) if Some(*of) == app));
            }
            Fact::Person { command: Command::Uncordon | Command::Recordon, instance, .. } => {
                self.uncordoned.insert(instance.clone());
            }
            Fact::NodePatched { node, before, after, .. } if is_uncordoned(before, after) => {
                self.uncordoned.extend(facts.clusters.instance_at(node).map(str::to_owned));
            }
            Fact::AttemptEnded { id, ending } => self.ends(*id, ending, facts, verdict),
            _ => {}
        }
        let now = facts.clock.now();
        let changes = matches!(fact, Fact::PodDeleted { .. } | Fact::PodGone { .. });
        if changes || self.looked.is_none_or(|looked| looked + LOOKS_EVERY <= now) {
            self.looked = Some(now);
            self.look(facts, verdict);
        }
    }
}

impl Progress {
    /// Looks at what is owed now. Time counts only while nothing is out of order.
    fn look(&mut self, facts: &Facts<'_>, verdict: &mut Verdict) {
        let now = facts.clock.now();
        let all: Vec<_> = self.drains.iter().flat_map(|id| self.owed_by(*id, facts).map(|owed| (*id, owed))).collect();
        let before = std::mem::take(&mut self.owed);
        for (id, owed) in all {
            let key = (id, owed);
            let since = before.get(&key).copied().unwrap_or(now);
            let begins = facts.lambda.attempt(id).began + facts.skew() + BEGINS_WITHIN;
            let due = since.max(facts.calm_since(id)).max(begins - DONE_WITHIN) + DONE_WITHIN;
            verdict.holds(key.1.invariant(), now <= due, || format!("{id} owes {:?} since {since}", key.1));
            self.owed.insert(key, since);
        }
    }

    /// A drain ends that says that it is over: what it leaves undone, nobody else does.
    fn ends(&mut self, id: AttemptId, ending: &Ending, facts: &Facts<'_>, verdict: &mut Verdict) {
        let is_over = matches!(ending, Ending::Succeeded(ending) if ending == "Drained");
        for owed in self.owed_by(id, facts).filter(|owed| is_over && matches!(owed, Owed::Request(_))) {
            verdict.broken(owed.invariant(), &format!("{id} ends and owes {owed:?}"));
        }
        self.drains.remove(&id);
        self.owed.retain(|(by, _), _| *by != id);
    }

    /// What a drain owes now.
    fn owed_by<'a>(&self, id: AttemptId, facts: &Facts<'a>) -> impl Iterator<Item = Owed> + use<'a> {
        let (now, instance) = (facts.clock.now(), facts.instance(id).unwrap_or_default());
        let is_wanted = facts.drains_until(id).is_some_and(|until| now < until) && facts.is_in_use(instance);
        let node = facts.aws.node_of(instance).filter(|_| is_wanted && !self.uncordoned.contains(instance));
        let there: Vec<&Pod> = node.into_iter().flat_map(|node| facts.clusters.pods_on(node)).collect();
        let apps = &facts.plan.apps;
        let there: Vec<&Pod> = there.into_iter().filter(|pod| !apps[pod.app].stays() && !pod.has_stopped).collect();
        let keeps_volumes = node.is_some_and(|node| facts.clusters.keeps_volumes(node));
        let end = (node.is_some() && there.is_empty() && !keeps_volumes).then_some(Owed::End);
        // A pod that returns may stay.
        let returns = |pod: &Pod| apps[pod.app].tolerates || facts.plan.may_stay_open();
        let known = |pod: &&&Pod| self.came.get(&pod.uid).is_none_or(|came| *came + KNOWN_AFTER <= now);
        let stay: Vec<_> = there.iter().filter(|pod| pod.deletion.is_none() && !returns(pod)).filter(known).collect();
        // A drain that begins late, or claims its node late, has its window from then on.
        let began = facts.lambda.attempt(id).began.max(facts.calm_since(id)) + BEGINS_WITHIN;
        let deadline = facts.deadline(id).filter(Deadline::is_known).map(|deadline| deadline.unbraked(facts.plan));
        let deadline = deadline.map(|deadline| Deadline { sent: deadline.sent.max(began), ..deadline });
        let due = |pod: &Pod| deadline?.forced_from(&apps[pod.app]);
        let late = stay.iter().filter(|pod| due(pod).is_some_and(|due| due + facts.skew() <= now));
        let late: Vec<_> = late.map(|pod| Owed::Force(pod.uid.clone())).collect();
        let free = stay
            .into_iter()
            .filter(|pod| apps[pod.app].annotation.is_none_or(|annotation| annotation == Annotation::Last));
        let free = free.filter(|pod| self.is_turn_of(pod, &there, apps));
        let owed = free.filter_map(|pod| {
            let is_allowed = pod.is_ready && facts.clusters.allows(pod.app);
            let again = is_allowed.then_some(Owed::UseOfBudget(pod.app));
            if self.asked.contains(&pod.uid) { again } else { Some(Owed::Request(pod.uid.clone())) }
        });
        owed.chain(late).chain(end).collect::<Vec<_>>().into_iter()
    }

    /// Whether all have gone that leave before that pod, or are merely blocked.
    fn is_turn_of(&self, pod: &Pod, there: &[&Pod], apps: &[App]) -> bool {
        let is_blocked = |pod: &Pod| pod.deletion.is_none() && self.asked.contains(&pod.uid);
        match Tier::of(&apps[pod.app]) {
            Tier::Ordinary => true,
            Tier::Critical => there.iter().all(|pod| Tier::of(&apps[pod.app]) != Tier::Ordinary || is_blocked(pod)),
            Tier::Last => there.iter().all(|pod| Tier::of(&apps[pod.app]) == Tier::Last),
        }
    }
}

/// In which order pods leave.
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
