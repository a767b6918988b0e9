//! Where a drain stands: which pods still have to leave, what is to be asked next, and what
//! became of each. Pure: answers and changes in, requests out; the clock is handed in.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use tokio::time::Instant;

use super::DrainEnd;
use super::blocker::Blocker;
use super::deadline::{Deletion, Grace, Window};
use super::disruptions_allowed::{BudgetName, DisruptionsAllowed, Queue};
use super::do_not_disrupt::DoNotDisrupt;
use super::evict::{Answer, Method};
use super::kubelet::Kubelet;
use super::plan::{Disposition, Planned, PodName, PodUid, Tier, plan};
use super::pod::{PodState, Tracked};
use super::shares::Shares;
use super::transition::Transition;
use crate::invocation::clock::Clock;
use crate::kube::pod::Pod;
use crate::kube::watch::Change;

/// How many evictions are under way at once: of the 100 streams that an API server allows on an
/// HTTP/2 connection (kubernetes, `secure_serving.go`) all but three, for the pods' watch, a
/// budget's watch and a look at the node. The others wait for the first answers: of 110 pods that
/// left a node at once those came after 80 to 240 ms.
pub(crate) const EVICTIONS_AT_ONCE: usize = 97;
/// How long after its grace period a pod may be expected to be reported gone.
const OVERDUE_AFTER: Duration = Duration::from_secs(10);
/// How often a node is looked at while a pod on it is overdue.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// A pod to be told to leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) uid: PodUid,
    pub(crate) name: PodName,
    pub(crate) way: Method,
    pub(crate) grace: Grace,
}

/// Since when what we know of the node's pods is whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    /// They were listed beside the claim: one may have been bound between the list and the cordon.
    BesideTheClaim,
    /// They were listed after it, or the watch has told of what happened since.
    AfterTheClaim,
}

/// All pods of the node.
#[derive(Debug)]
pub(crate) struct Progress {
    known: Known,
    window: Window,
    clock: Clock,
    pods: BTreeMap<PodUid, Tracked>,
    rooms: DisruptionsAllowed,
    in_flight: usize,
    /// The last look at the node.
    looked: Option<(Instant, Kubelet)>,
    /// Transition since they were last taken.
    news: Vec<Transition>,
    /// The missing rights that have been told of.
    forbidden: BTreeSet<String>,
}

impl Progress {
    /// A drain that begins with these pods.
    pub(crate) fn new(pods: &[Pod], known: Known, window: Window, clock: Clock, now: Instant) -> Self {
        let mut progress = Self {
            known,
            window,
            clock,
            pods: BTreeMap::new(),
            rooms: DisruptionsAllowed::default(),
            in_flight: 0,
            looked: None,
            news: Vec::new(),
            forbidden: BTreeSet::new(),
        };
        for pod in pods {
            progress.see(pod, now);
        }
        progress
    }

    /// Whether the pods have to be listed before the drain may end: none has to leave of those
    /// that we know of, and nothing has told us whether the cordon let another one through.
    pub(crate) fn is_to_be_listed(&self) -> bool {
        self.known == Known::BesideTheClaim && self.end().is_some()
    }

    /// How the drain has ended, if nothing is left that has to leave.
    pub(crate) fn end(&self) -> Option<DrainEnd> {
        let mut end = DrainEnd::Empty;
        for pod in self.pods.values() {
            match pod.state {
                PodState::Stays(_) | PodState::Gone => {}
                PodState::Unconfirmed => end = DrainEnd::Silent,
                PodState::Due(_) | PodState::Held(_) | PodState::Asked | PodState::Leaving(_) => return None,
            }
        }
        Some(end)
    }

    /// The pods, by UID.
    pub(crate) fn into_pods(self) -> BTreeMap<PodUid, Tracked> {
        self.pods
    }

    /// What has happened since the last call.
    pub(crate) fn take_news(&mut self) -> Vec<Transition> {
        std::mem::take(&mut self.news)
    }

    /// The evictions to ask for now; each has to be [`answered`](Self::answered).
    pub(crate) fn requests(&mut self, now: Instant) -> Vec<Request> {
        let tier = self.tier(now);
        let released = self.released(tier, now);
        let window = self.window;
        let mut shares = Shares::of(self.pods.values());
        let mut requests = Vec::new();
        for (uid, pod) in &mut self.pods {
            if self.in_flight == EVICTIONS_AT_ONCE {
                break;
            }
            let is_due = |due: &(Instant, Method)| pod.tier <= tier && shares.not_before(pod, *due, window) <= now;
            let by_time = pod.due(window).filter(is_due).map(|(_, way)| way);
            let Some(way) = by_time.or(released.contains(uid).then_some(Method::Evict)) else { continue };
            let Some(grace) = pod.grace_now(window, now) else { continue };
            if let Some(budget) = pod.budget() {
                self.rooms.asked(budget, now);
            }
            shares.asked(pod);
            pod.tell(way, grace, now);
            self.in_flight += 1;
            requests.push(Request { uid: uid.clone(), name: pod.name.clone(), way, grace });
        }
        requests
    }

    /// When [`requests`](Self::requests) or [`look`](Self::look) may have something new by the mere
    /// passing of time.
    pub(crate) fn next_due(&self, now: Instant) -> Option<Instant> {
        let look = self.next_look();
        if self.in_flight == EVICTIONS_AT_ONCE {
            return look;
        }
        let tier = self.tier(now);
        let shares = Shares::of(self.pods.values());
        let by_time = self.pods.values().filter(|pod| pod.waits()).filter_map(|pod| {
            let due = |due| shares.not_before(pod, due, self.window);
            if pod.tier <= tier { pod.due(self.window).map(due) } else { self.critical_tier_at() }
        });
        let queues = self.queues(tier).into_iter().filter(|(_, queue)| !queue.held.is_empty());
        let by_budget = queues.filter_map(|(budget, queue)| self.rooms.next(budget, queue.asked, now));
        by_time.chain(by_budget).chain(look).min()
    }

    /// The namespaces whose budgets hold pods.
    pub(crate) fn namespaces_held(&self) -> BTreeSet<&str> {
        let held = self.pods.values().filter(|pod| matches!(pod.state, PodState::Held(_)));
        held.filter_map(Tracked::budget).map(|budget| budget.namespace.as_str()).collect()
    }

    /// Whether the node is to be looked at now; the look has to be [`looked`](Self::looked).
    pub(crate) fn look(&mut self, now: Instant) -> bool {
        let due = self.next_look().is_some_and(|at| at <= now);
        if due {
            let before = self.looked.map_or(Kubelet::Answers, |(_, kubelet)| kubelet);
            self.looked = Some((now, before));
        }
        due
    }

    /// A pod that is overdue raises the question whether anybody is there to tell of its end. Once
    /// nobody was, the question is asked for every pod that leaves.
    fn next_look(&self) -> Option<Instant> {
        let silent = self.looked.is_some_and(|(_, kubelet)| kubelet == Kubelet::Silent);
        let leaving = self.pods.values().filter_map(|pod| match pod.state {
            PodState::Leaving(by) => Some(if silent { pod.asked } else { by + OVERDUE_AFTER }),
            _ => None,
        });
        let overdue = leaving.min()?;
        Some(self.looked.map_or(overdue, |(at, _)| overdue.max(at + LOOK_EVERY)))
    }

    /// Takes what a look at the node saw: on a silent one nothing that leaves is waited for.
    pub(crate) fn looked(&mut self, kubelet: Kubelet, now: Instant) {
        self.looked = Some((now, kubelet));
        if kubelet == Kubelet::Silent {
            for pod in self.pods.values_mut().filter(|pod| matches!(pod.state, PodState::Leaving(_))) {
                pod.state = PodState::Unconfirmed;
                self.news.push(Transition::Unconfirmed(pod.name.clone()));
            }
        }
    }

    /// The held pods whose budgets have room for them, or whose turn it is to see whether they have.
    fn released(&self, tier: Tier, now: Instant) -> BTreeSet<PodUid> {
        let queues = self.queues(tier).into_iter();
        let released = queues.flat_map(|(budget, queue)| {
            let count = self.rooms.count(budget, queue.asked, now);
            queue.first(count)
        });
        released.cloned().collect()
    }

    fn queues(&self, tier: Tier) -> BTreeMap<&BudgetName, Queue<'_>> {
        let mut queues = BTreeMap::<_, Queue<'_>>::new();
        for (uid, pod) in &self.pods {
            let Some(budget) = pod.budget() else { continue };
            match pod.state {
                PodState::Asked => queues.entry(budget).or_default().asked += 1,
                PodState::Held(_) if pod.tier <= tier => {
                    queues.entry(budget).or_default().held.push((pod.asked, uid));
                }
                _ => {}
            }
        }
        queues
    }

    /// Critical pods begin when the others have gone, or when they must to be in time.
    fn tier(&self, now: Instant) -> Tier {
        let ordinary = self.pods.values().any(|pod| {
            pod.tier == Tier::Ordinary && (pod.waits() || matches!(pod.state, PodState::Asked | PodState::Leaving(_)))
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
        let news = pod.answered(answer, self.window, now);
        match (pod.state, pod.budget()) {
            (PodState::Leaving(_), Some(budget)) => self.rooms.evicted(budget),
            (PodState::Held(_), Some(budget)) => self.rooms.refused(budget, pod.asked, now),
            _ => {}
        }
        self.report(news);
    }

    fn report(&mut self, news: Option<Transition>) {
        match news {
            // It is the same for all pods of a namespace.
            Some(Transition::Forbidden(right)) if !self.forbidden.insert(right.clone()) => {}
            news => self.news.extend(news),
        }
    }

    /// Takes what the watch of the node's pods saw.
    pub(crate) fn changed(&mut self, change: Change<Pod>, now: Instant) {
        match change {
            Change::Seen(pod) => {
                if let Some(uid) = pod.metadata.uid.clone().filter(|_| pod.metadata.deletion_timestamp.is_some()) {
                    self.saw_leaving(&PodUid(uid));
                }
                self.see(&pod, now);
            }
            Change::Gone(pod) => {
                if let Some(uid) = pod.metadata.uid.map(PodUid) {
                    self.saw_leaving(&uid);
                    self.gone(&uid, now);
                }
            }
            Change::OnlyThese(pods) => {
                self.known = Known::AfterTheClaim;
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

    /// Notes that the watch saw a pod leave. If we told it to, that was after the claim, and the watch leaves
    /// nothing out.
    fn saw_leaving(&mut self, uid: &PodUid) {
        if self.pods.get(uid).is_some_and(|pod| pod.told.is_some()) {
            self.known = Known::AfterTheClaim;
        }
    }

    /// Takes what a watch saw of a namespace's budgets. A budget that is no more holds nothing.
    pub(crate) fn budgets_changed(&mut self, namespace: &str, change: Change<PodDisruptionBudget>, now: Instant) {
        for budget in self.rooms.changed(namespace, change, now) {
            let held = self.pods.values_mut().filter(|pod| matches!(pod.state, PodState::Held(_)));
            held.filter(|pod| pod.budget() == Some(&budget)).for_each(|pod| pod.state = PodState::Due(now));
        }
    }

    /// A pod that is new gets its place; one that is known may have begun to leave by itself, or
    /// changed its wish.
    fn see(&mut self, pod: &Pod, now: Instant) {
        let Some(Planned { uid, name, owner, grace, tier, place }) = plan(pod) else { return };
        let pod =
            self.pods.entry(uid.clone()).or_insert_with(|| Tracked::new(name, tier, grace, PodState::Due(now), now));
        pod.owner = owner;
        let ends = |wish: &DoNotDisrupt| wish.until.map(|until| self.clock.instant(until));
        let news = match place {
            Disposition::Stays(why) => {
                pod.state = PodState::Stays(why);
                None
            }
            Disposition::Stopped => pod.gone(now),
            Disposition::Leaving { by, given } => {
                let since = by.saturating_sub(given.unwrap_or_default()).unwrap_or(Timestamp::MIN);
                pod.deletion = Some(Deletion { since: self.clock.instant(since), by: self.clock.instant(by) });
                pod.seen_leaving(given);
                // Another drain had more time for it, or a person gave it more than there is.
                if pod.waits() && pod.grace_now(self.window, now).is_some() {
                    pod.state = PodState::Due(now);
                }
                None
            }
            Disposition::DoNotDisrupt(wish) if ends(&wish).is_none_or(|ends| ends > now) => {
                let ends = ends(&wish);
                pod.waits().then(|| pod.held(Blocker::DoNotDisrupt(wish), ends)).flatten()
            }
            Disposition::DoNotDisrupt(_) | Disposition::Leaves => {
                if matches!((&pod.hold, pod.state), (Some(Blocker::DoNotDisrupt(_)), PodState::Held(_))) {
                    pod.state = PodState::Due(now);
                }
                None
            }
        };
        self.report(news);
    }

    fn gone(&mut self, uid: &PodUid, now: Instant) {
        let news = self.pods.get_mut(uid).and_then(|pod| pod.gone(now));
        self.report(news);
    }
}

#[cfg(test)]
mod tests;
