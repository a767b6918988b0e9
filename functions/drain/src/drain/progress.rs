//! Where a drain stands: which pods still have to leave, what is to be requested next, and what
//! became of each. Pure: answers and changes in, requests out; the clock is handed in.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use tokio::time::Instant;

use super::budgets::{KnownBudgets, namespaces_to_watch};
use super::deadline::{Deletion, Grace, Window};
use super::evict::{Answer, EVICTIONS_AT_ONCE, Method};
use super::kubelet::Kubelet;
use super::plan::{Disposition, Planned, PodName, PodUid, Tier, plan};
use super::pod::blocker::Blocker;
use super::pod::transition::Transition;
use super::pod::{PodState, Tracked};
use super::report::DrainEnd;
use crate::invocation::clock::Clock;
use crate::kube::pod::Pod;
use crate::kube::watch::Change;

/// How long after its grace period a pod may be expected to be reported gone.
const OVERDUE_AFTER: Duration = Duration::from_secs(10);
/// How often a node is looked at while a pod on it is overdue.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// A pod to be requested to leave, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LeaveRequest {
    pub(crate) uid: PodUid,
    pub(crate) name: PodName,
    pub(crate) method: Method,
    pub(crate) grace: Grace,
}

/// All pods of the node.
#[derive(Debug)]
pub(crate) struct Progress {
    window: Window,
    clock: Clock,
    pods: BTreeMap<PodUid, Tracked>,
    budgets: KnownBudgets,
    in_flight: usize,
    /// The last look at the node.
    looked: Option<(Instant, Kubelet)>,
    /// What is to be logged.
    transitions: Vec<Transition>,
    /// The missing rights that have been logged.
    forbidden: BTreeSet<String>,
}

impl Progress {
    /// A drain that begins with these pods.
    pub(crate) fn new(pods: &[Pod], window: Window, clock: Clock, now: Instant) -> Self {
        let mut progress = Self {
            window,
            clock,
            pods: BTreeMap::new(),
            budgets: KnownBudgets::default(),
            in_flight: 0,
            looked: None,
            transitions: Vec::new(),
            forbidden: BTreeSet::new(),
        };
        for pod in pods {
            progress.see(pod, now);
        }
        progress
    }

    /// How the drain has ended, if nothing is left that has to leave.
    pub(crate) fn end(&self) -> Option<DrainEnd> {
        let mut end = DrainEnd::Empty;
        for pod in self.pods.values() {
            match pod.state {
                PodState::Stays(_) | PodState::Gone { .. } => {}
                PodState::Unconfirmed => end = DrainEnd::Silent,
                PodState::Due { .. }
                | PodState::Blocked { .. }
                | PodState::Requested { .. }
                | PodState::Leaving { .. } => return None,
            }
        }
        Some(end)
    }

    /// The pods, by UID.
    pub(crate) fn into_pods(self) -> BTreeMap<PodUid, Tracked> {
        self.pods
    }

    /// What is to be logged of what has happened since the last call.
    pub(crate) fn take_transitions(&mut self) -> Vec<Transition> {
        std::mem::take(&mut self.transitions)
    }

    /// The requests to make now; each has to be [`answered`](Self::answered).
    pub(crate) fn requests(&mut self, now: Instant) -> Vec<LeaveRequest> {
        let tier = self.tier(now);
        let released = self.budgets.released(&self.pods, tier, now);
        let window = self.window;
        let mut requests = Vec::new();
        for (uid, pod) in &mut self.pods {
            if self.in_flight == EVICTIONS_AT_ONCE {
                break;
            }
            let by_time = pod.next_request(window).filter(|(due, _)| pod.tier <= tier && *due <= now);
            let by_budget = released.contains(uid).then_some(Method::Evict);
            let Some(method) = by_time.map(|(_, method)| method).or(by_budget) else { continue };
            let Some(grace) = pod.grace_now(window, now) else {
                pod.goes_on();
                continue;
            };
            if let Some(budget) = pod.state.budget() {
                self.budgets.requested(budget, now);
            }
            pod.request(method, grace, now);
            self.in_flight += 1;
            requests.push(LeaveRequest { uid: uid.clone(), name: pod.name.clone(), method, grace });
        }
        requests
    }

    /// When there may be new [`requests`](Self::requests) or a [look](Self::is_look_due) by the mere
    /// passing of time.
    pub(crate) fn next_due(&self, now: Instant) -> Option<Instant> {
        let look = self.next_look();
        if self.in_flight == EVICTIONS_AT_ONCE {
            return look;
        }
        let tier = self.tier(now);
        let by_time = self.pods.values().filter(|pod| pod.waits()).filter_map(|pod| {
            if pod.tier <= tier { pod.next_request(self.window).map(|(due, _)| due) } else { self.critical_tier_at() }
        });
        let by_budget = self.budgets.next_due(&self.pods, tier, now);
        by_time.chain(by_budget).chain(look).min()
    }

    /// The namespaces whose budgets block pods.
    pub(crate) fn namespaces_to_watch(&self) -> BTreeSet<&str> {
        namespaces_to_watch(&self.pods)
    }

    /// Whether the node is to be looked at now.
    pub(crate) fn is_look_due(&self, now: Instant) -> bool {
        self.next_look().is_some_and(|at| at <= now)
    }

    /// Notes that the node is being looked at; what is seen has to be [`looked`](Self::looked).
    pub(crate) fn look_begins(&mut self, now: Instant) {
        let before = self.looked.map_or(Kubelet::Answers, |(_, kubelet)| kubelet);
        self.looked = Some((now, before));
    }

    /// A pod that is overdue raises the question whether anybody is there to report its end. Once
    /// nobody was, the question is raised for every pod that leaves.
    fn next_look(&self) -> Option<Instant> {
        let silent = self.looked.is_some_and(|(_, kubelet)| kubelet == Kubelet::Silent);
        let leaving = self.pods.values().filter_map(|pod| match pod.state {
            PodState::Leaving { by } => Some(if silent { pod.history.last_requested_at() } else { by + OVERDUE_AFTER }),
            _ => None,
        });
        let overdue = leaving.min()?;
        Some(self.looked.map_or(overdue, |(at, _)| overdue.max(at + LOOK_EVERY)))
    }

    /// Takes what a look at the node saw: on a silent one nothing that leaves is waited for.
    pub(crate) fn looked(&mut self, kubelet: Kubelet, now: Instant) {
        self.looked = Some((now, kubelet));
        if kubelet == Kubelet::Silent {
            for pod in self.pods.values_mut().filter(|pod| matches!(pod.state, PodState::Leaving { .. })) {
                pod.state = PodState::Unconfirmed;
                self.transitions.push(Transition::Unconfirmed(pod.name.clone()));
            }
        }
    }

    /// Critical pods begin when the others have gone, or when they must to be in time.
    fn tier(&self, now: Instant) -> Tier {
        let ordinary = self.pods.values().any(|pod| {
            pod.tier == Tier::Ordinary
                && (pod.waits() || matches!(pod.state, PodState::Requested { .. } | PodState::Leaving { .. }))
        });
        let must = self.critical_tier_at().is_some_and(|at| at <= now);
        if ordinary && !must { Tier::Ordinary } else { Tier::Critical }
    }

    /// The last safe moment of the critical pod that asks for the longest grace.
    fn critical_tier_at(&self) -> Option<Instant> {
        let critical = self.pods.values().filter(|pod| pod.tier == Tier::Critical && pod.waits());
        critical.map(|pod| pod.grace).max().and_then(|grace| self.window.last_safe_moment(grace))
    }

    /// Takes the answer to a request.
    pub(crate) fn answered(&mut self, uid: &PodUid, answer: Answer, now: Instant) {
        self.in_flight -= 1;
        let Some(pod) = self.pods.get_mut(uid) else { return };
        let blocked_before = pod.state.budget().cloned();
        let transition = pod.answered(answer, self.window, now);
        match (&pod.state, blocked_before) {
            (PodState::Leaving { .. }, Some(budget)) => self.budgets.evicted(&budget),
            (PodState::Blocked { by: Blocker::Budget(budget), .. }, _) => {
                self.budgets.refused(budget, pod.history.last_requested_at(), now);
            }
            _ => {}
        }
        self.note(transition);
    }

    fn note(&mut self, transition: Option<Transition>) {
        match transition {
            // It is the same for all pods of a namespace.
            Some(Transition::Forbidden(right)) if !self.forbidden.insert(right.clone()) => {}
            transition => self.transitions.extend(transition),
        }
    }

    /// Takes what the watch of the node's pods saw.
    pub(crate) fn changed(&mut self, change: Change<Pod>, now: Instant) {
        match change {
            Change::Seen(pod) => self.see(&pod, now),
            Change::Gone(pod) => {
                if let Some(uid) = pod.metadata.uid {
                    self.gone(&PodUid(uid), now);
                }
            }
            Change::OnlyThese(pods) => {
                let there: BTreeSet<PodUid> = pods.iter().filter_map(plan).map(|planned| planned.uid).collect();
                let absent: Vec<PodUid> = self.pods.keys().filter(|uid| !there.contains(uid)).cloned().collect();
                for uid in absent {
                    self.gone(&uid, now);
                }
                for pod in &pods {
                    self.see(pod, now);
                }
            }
            Change::Begun | Change::Interrupted(_) => {}
        }
    }

    /// Takes what a watch saw of a namespace's budgets. A budget that is no more blocks nothing.
    pub(crate) fn budgets_changed(&mut self, namespace: &str, change: Change<PodDisruptionBudget>, now: Instant) {
        for gone in self.budgets.changed(namespace, change, now) {
            for pod in self.pods.values_mut() {
                pod.release(|by| by.budget() == Some(&gone), now);
            }
        }
    }

    /// A pod that is new is planned; one that is known may have begun to leave by itself, or its annotations may have
    /// changed.
    fn see(&mut self, pod: &Pod, now: Instant) {
        let Some(Planned { uid, name, grace, tier, disposition }) = plan(pod) else { return };
        let pod = self.pods.entry(uid).or_insert_with(|| Tracked::new(name, tier, grace, now));
        let transition = match disposition {
            Disposition::Stays(why) => {
                pod.state = PodState::Stays(why);
                None
            }
            Disposition::Stopped => pod.gone(now),
            Disposition::Leaving { by, given } => {
                let since = by.saturating_sub(given.unwrap_or_default()).unwrap_or(Timestamp::MIN);
                let deletion = Deletion { since: self.clock.instant(since), by: self.clock.instant(by) };
                pod.seen_leaving(deletion, given, self.window, now);
                None
            }
            Disposition::DoNotDisrupt(do_not_disrupt) => {
                let until = do_not_disrupt.until.map(|until| self.clock.instant(until));
                pod.not_to_be_disrupted(do_not_disrupt, until, now)
            }
            Disposition::Leaves => {
                pod.may_be_disrupted(now);
                None
            }
        };
        self.note(transition);
    }

    fn gone(&mut self, uid: &PodUid, now: Instant) {
        let transition = self.pods.get_mut(uid).and_then(|pod| pod.gone(now));
        self.note(transition);
    }
}

#[cfg(test)]
mod tests;
