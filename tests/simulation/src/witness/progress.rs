//! That a drain moves: while its instance runs and nothing is out of order, what it owes is done soon.
//!
//! What is owed is looked at again and again. It is broken when it has been owed for too long, or by an attempt that ends.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use super::deadline::{Deadline, Termination, seconds};
use super::{Facts, Invariant, Verdict, Witness};
use crate::cluster::Pod;
use crate::fact::Fact;
use crate::lambda::{AttemptId, Ending};
use crate::plan::{Annotation, App, Command};

/// How long it takes to begin: EC2 may be behind its own notice for twenty seconds.
const BEGINS_WITHIN: SignedDuration = SignedDuration::from_secs(30);
/// How long it takes to do what is due: a watch tells of it three seconds late, and a budget is tried every five.
const DONE_WITHIN: SignedDuration = SignedDuration::from_secs(12);
/// A pod that came so recently need not be known.
const KNOWN_AFTER: SignedDuration = SignedDuration::from_secs(10);
/// How often it is looked.
const LOOKS_EVERY: SignedDuration = SignedDuration::from_millis(250);

/// What the attempts at drains owe, and since when.
#[derive(Debug, Default)]
pub(super) struct Progress {
    drains: BTreeSet<AttemptId>,
    owed: BTreeMap<(AttemptId, Owed), Timestamp>,
    /// The pods that were requested to leave, by whichever attempt.
    asked: BTreeSet<String>,
    /// When each pod came to its node.
    came: BTreeMap<String, Timestamp>,
    /// The instances whose nodes a person has uncordoned.
    uncordoned: BTreeSet<String>,
    looked: Option<Timestamp>,
}

/// What a drain owes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Owed {
    /// That a pod is requested to leave.
    Request(String),
    /// That a pod leaves by now, whatever blocks it.
    Force(String),
    /// That one of an app's pods leaves, as its budget allows.
    UseOfBudget(usize),
    /// That a drain whose node is empty ends.
    End,
}

impl Owed {
    fn invariant(&self) -> Invariant {
        match self {
            Self::Request(_) => Invariant::AskedSoon,
            Self::Force(_) => Invariant::ForcedInTime,
            Self::UseOfBudget(_) => Invariant::BudgetIsUsed,
            Self::End => Invariant::EndsSoon,
        }
    }
}

impl Witness for Progress {
    fn sees(&mut self, fact: &Fact, facts: &Facts<'_>, verdict: &mut Verdict) {
        match fact {
            Fact::AttemptBegan { id, .. } if facts.drains(*id) => {
                self.drains.insert(*id);
            }
            Fact::PodBound { uid, .. } => {
                self.came.entry(uid.clone()).or_insert(facts.clock.now());
            }
            Fact::LeaveRequested { request, .. } => self.asked.extend(request.uid.clone()),
            Fact::PodDeleted { uid, .. } => {
                let app = facts.cluster.pod(uid).map(|pod| pod.app);
                self.owed.retain(|(_, owed), _| !matches!(owed, Owed::UseOfBudget(of) if Some(*of) == app));
            }
            Fact::Person { command: Command::Uncordon | Command::Recordon, instance, .. } => {
                self.uncordoned.insert(instance.clone());
            }
            Fact::AttemptEnded { id, ending } if self.drains.contains(id) => {
                self.look(facts, verdict);
                self.ends(*id, ending, facts, verdict);
            }
            _ => {}
        }
        let now = facts.clock.now();
        if self.looked.is_none_or(|looked| looked + LOOKS_EVERY <= now) {
            self.looked = Some(now);
            self.look(facts, verdict);
        }
    }
}

impl Progress {
    /// Looks at what is owed now.
    fn look(&mut self, facts: &Facts<'_>, verdict: &mut Verdict) {
        let now = facts.clock.now();
        let mut owed = BTreeMap::new();
        for id in self.drains.iter().copied() {
            for what in self.owed_by(id, facts) {
                let key = (id, what);
                let since = self.owed.get(&key).copied().unwrap_or(now);
                owed.insert(key, since);
            }
        }
        owed.retain(|(id, what), since| {
            let began = facts.lambda.attempt(*id).began + facts.skew();
            let detaches = match what {
                Owed::End => seconds(facts.plan, "SPILLWAY_VOLUME_WAIT_S"),
                _ => SignedDuration::ZERO,
            };
            let due =
                facts.calm(*since + DONE_WITHIN, DONE_WITHIN).max(facts.calm(began + BEGINS_WITHIN, BEGINS_WITHIN));
            let is_late = due + detaches < now;
            verdict.holds(what.invariant(), !is_late, || format!("{id} owes {what:?} since {since}"));
            !is_late
        });
        self.owed = owed;
    }

    /// An attempt ends: what it leaves undone, nobody else does, unless it hands it on or fails for a fault.
    fn ends(&mut self, id: AttemptId, ending: &Ending, facts: &Facts<'_>, verdict: &mut Verdict) {
        self.drains.remove(&id);
        let (now, began) = (facts.clock.now(), facts.lambda.attempt(id).began);
        let is_over = match ending {
            Ending::Succeeded(ending) => !ending.contains("Continued"),
            Ending::Failed(_) => facts.calm(began, now.duration_since(began)) <= now,
            Ending::Killed | Ending::TimedOut | Ending::Panicked(_) => false,
        };
        for ((by, what), since) in &self.owed {
            let is_owed = *by == id && matches!(what, Owed::Request(_)) && is_over;
            verdict
                .holds(what.invariant(), !is_owed, || format!("{id} ends ({ending}) and owes {what:?} since {since}"));
        }
        self.owed.retain(|(by, _), _| *by != id);
    }

    /// What an attempt at a drain owes now.
    fn owed_by(&self, id: AttemptId, facts: &Facts<'_>) -> Vec<Owed> {
        let (Some(instance), Some(deadline)) = (facts.instance(id), facts.deadline(id)) else { return Vec::new() };
        let may_be_called_off = matches!(facts.kind(id), Some("maintenance" | "rebalance"));
        if !facts.is_in_use(instance) || may_be_called_off && self.uncordoned.contains(instance) {
            return Vec::new();
        }
        let node = facts.aws.node_of(instance).expect("it has one");
        let now = facts.clock.now();
        let app = |pod: &Pod| &facts.plan.apps[pod.app];
        let there: Vec<&Pod> =
            facts.cluster.pods_on(node).filter(|pod| !app(pod).stays() && !pod.has_stopped).collect();
        if there.is_empty() {
            return vec![Owed::End];
        }
        let tiers = there.iter().map(|pod| (*pod, Tier::of(app(pod)))).collect::<Vec<_>>();
        // What its controller puts back may stay.
        let leave = there.iter().filter(|pod| pod.deletion.is_none() && !app(pod).tolerates);
        let leave = leave.filter(|pod| self.came.get(&pod.uid).is_none_or(|came| *came + KNOWN_AFTER <= now));
        let mut owed = Vec::new();
        for pod in leave {
            let (uid, app) = (pod.uid.clone(), app(pod));
            let is_asked = self.asked.contains(&uid);
            let is_free = app.annotation.is_none_or(|annotation| annotation == Annotation::Last);
            if is_free && !is_asked && self.is_turn_of(Tier::of(app), &tiers) {
                owed.push(Owed::Request(uid.clone()));
            }
            let allowed = facts.cluster.allowed(pod.app);
            if is_free
                && is_asked
                && self.is_turn_of(Tier::of(app), &tiers)
                && pod.is_ready
                && allowed.is_some_and(|allowed| allowed > 0)
                && app.budgets == 1
            {
                owed.push(Owed::UseOfBudget(pod.app));
            }
            let are_several_open = app.budgets > 1 && allowed.is_some_and(|allowed| allowed > 0);
            if !are_several_open && forced_by(deadline, app, facts.lambda.attempt(id).began).is_some_and(|by| by <= now)
            {
                owed.push(Owed::Force(uid));
            }
        }
        owed
    }

    /// Whether all have gone that leave before those of a tier, or are merely blocked.
    fn is_turn_of(&self, tier: Tier, there: &[(&Pod, Tier)]) -> bool {
        let is_blocked = |pod: &Pod| pod.deletion.is_none() && self.asked.contains(&pod.uid);
        match tier {
            Tier::Ordinary => true,
            Tier::Critical => there.iter().all(|(pod, of)| *of != Tier::Ordinary || is_blocked(pod)),
            Tier::Last => there.iter().all(|(_, of)| *of == Tier::Last),
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

/// When a pod leaves at the latest, whatever blocks it: half of the window may begin with the attempt.
fn forced_by(deadline: Deadline, app: &App, began: Timestamp) -> Option<Timestamp> {
    if app.annotation == Some(Annotation::Skip) {
        return None;
    }
    let half = match deadline.termination {
        Termination::At(goes) | Termination::AtTheLatest(goes) => began + goes.duration_since(began) / 2,
        Termination::Soon { .. } | Termination::Unknown => began,
    };
    Some(deadline.last_safe_moment(app)?.max(half))
}
