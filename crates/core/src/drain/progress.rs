//! Tracks the progress of a drain. Takes changes of pods and answers of the API server, and returns the next requests and the
//! drain's result. Pure: the caller passes the time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use spillway_notice::continued::PublishedBlockage;
use tokio::time::Instant;

use super::answer::Answer;
use super::blockage::{Blockage, BlockageNews};
use super::budgets::{KnownBudgets, namespaces_to_watch};
use super::deadline::{Deletion, Termination, Window};
use super::kubelet::Kubelet;
use super::plan::{Disposition, Planned, PodUid, plan};
use super::pod::transition::Transition;
use super::pod::{PodState, Tracked, Unconfirmed};
use super::report::DrainEnd;
use super::request::{DELETIONS_AT_ONCE, EVICTIONS_AT_ONCE, LeaveRequest, Method};
use super::returns::{Arrival, Returns};
use super::tier::Tier;
use crate::clock::Clock;
use crate::kube::budget::DisruptionBudget;
use crate::kube::change::Change;
use crate::kube::pod::Pod;

/// Time from the end of a terminating pod's grace period until the drain starts to watch the node.
const OVERDUE_AFTER: Duration = Duration::from_secs(10);
/// Time from the end of a terminating pod's grace period until the pod counts as stuck, if the kubelet answers.
const STUCK_AFTER: Duration = Duration::from_secs(300);
/// Maximum number of concurrent requests to evict or delete pods.
pub const REQUESTS_AT_ONCE: usize = EVICTIONS_AT_ONCE + DELETIONS_AT_ONCE;

#[derive(Debug)]
pub struct Progress {
    window: Window,
    clock: Clock,
    pods: BTreeMap<PodUid, Tracked>,
    budgets: KnownBudgets,
    returns: Returns,
    blockage: Blockage,
    in_flight: InFlight,
    is_node_watched: bool,
    /// Last observed state of the node's kubelet.
    kubelet: Option<Kubelet>,
    /// The pod garbage collector has deleted pods, so the node has possibly been deleted.
    is_collecting: bool,
    transitions: Vec<Transition>,
    /// Missing RBAC permissions that have been logged.
    forbidden: BTreeSet<String>,
}

/// Requests that have no answer yet, in the order in which they were sent. A pod may occur twice.
#[derive(Debug, Default)]
struct InFlight(Vec<(PodUid, Method)>);

impl InFlight {
    /// Returns `true` if another request may be sent now. `DELETIONS_AT_ONCE` requests are reserved for deletions.
    fn has_room_for(&self, method: Method) -> bool {
        let evictions = self.0.iter().filter(|(_, method)| !method.is_forced()).count();
        self.0.len() < REQUESTS_AT_ONCE && (method.is_forced() || evictions < EVICTIONS_AT_ONCE)
    }

    /// Removes the oldest unanswered request of the pod.
    fn answered(&mut self, uid: &PodUid) {
        if let Some(oldest) = self.0.iter().position(|(of, _)| of == uid) {
            self.0.remove(oldest);
        }
    }
}

impl Progress {
    /// Creates the state at the start of an invocation. `pods` are the pods on the node.
    pub fn new(pods: &[Pod], returns: Returns, window: Window, clock: Clock, now: Instant) -> Self {
        let mut progress = Self {
            window,
            clock,
            pods: BTreeMap::new(),
            budgets: KnownBudgets::default(),
            returns,
            blockage: Blockage::new(None, &BTreeMap::new()),
            in_flight: InFlight::default(),
            is_node_watched: false,
            kubelet: None,
            is_collecting: false,
            transitions: Vec::new(),
            forbidden: BTreeSet::new(),
        };
        for pod in pods {
            progress.observe(pod, Returns::listed, now);
        }
        progress
    }

    #[must_use]
    pub fn with_blockage(self, published: Option<PublishedBlockage>) -> Self {
        Self { blockage: Blockage::new(published, &self.pods), ..self }
    }

    /// Returns an event about blocked pods that is due now. The caller publishes the event.
    pub fn news(&mut self, now: Instant) -> Option<BlockageNews> {
        self.blockage.news(&self.pods, self.window, now)
    }

    pub fn published_blockage(&self) -> Option<PublishedBlockage> {
        self.blockage.published()
    }

    /// Returns the result of the drain. `None`: pods still have to leave.
    pub fn end(&self) -> Option<DrainEnd> {
        let mut end = DrainEnd::Empty;
        for pod in self.pods.values() {
            match pod.state {
                _ if pod.is_returned => {}
                PodState::Stays(_) | PodState::Gone { .. } => {}
                PodState::Waits { .. } if pod.is_finished_and_blocked() => {}
                PodState::Unconfirmed(Unconfirmed::Silent) => end = DrainEnd::Silent,
                PodState::Unconfirmed(Unconfirmed::Stuck) => {
                    end = if end == DrainEnd::Silent { end } else { DrainEnd::Stuck };
                }
                PodState::Waits { .. } | PodState::Requested | PodState::Leaving { .. } => return None,
            }
        }
        Some(end)
    }

    pub fn window(&self) -> Window {
        self.window
    }

    /// Replaces the drain's window by `window`, but keeps the present `dead_since`.
    pub fn tighten(&mut self, window: Window) {
        self.window = Window { dead_since: self.window.dead_since, ..window };
    }

    /// Returns the time at which the last late pod came. The scheduler assigns late pods before it observes the cordon.
    pub fn last_late_pod_at(&self) -> Option<Instant> {
        self.returns.last_late_pod_at
    }

    pub fn knows(&self, uid: &PodUid) -> bool {
        self.pods.contains_key(uid)
    }

    /// Returns all pods. If the node was deleted, terminating pods become `Unconfirmed`.
    pub fn into_pods(mut self) -> BTreeMap<PodUid, Tracked> {
        let is_node_gone = self.is_collecting && matches!(self.kubelet, Some(Kubelet::Silent | Kubelet::Dead));
        let leaving = self.pods.values_mut().filter(|pod| matches!(pod.state, PodState::Leaving { .. }));
        for pod in leaving.filter(|_| is_node_gone) {
            pod.settle(PodState::Unconfirmed(Unconfirmed::Silent));
        }
        self.pods
    }

    /// Returns the changes since the last call. The caller logs the changes.
    pub fn take_transitions(&mut self) -> Vec<Transition> {
        std::mem::take(&mut self.transitions)
    }

    /// Returns the requests to send now. The caller passes each answer to [`answered`](Self::answered).
    pub fn requests(&mut self, now: Instant) -> Vec<LeaveRequest> {
        self.mark_unconfirmed(now);
        let has_turn = self.turn(now);
        let released = self.budgets.released(&self.pods, &has_turn, now);
        let window = self.window;
        let mut requests = Vec::new();
        for (uid, pod) in &mut self.pods {
            // A request is due by time, or because the pod's budget allows it.
            let by_time = pod.next_request(window).filter(|(due, _)| has_turn(pod) && *due <= now);
            let by_budget = released.contains(uid).then_some(Method::Evict);
            let Some(method) = by_time.map(|(_, method)| method).or(by_budget) else { continue };
            if !self.in_flight.has_room_for(method) {
                continue;
            }
            let Some(grace) = pod.grace_now(window, now) else {
                // The pod is already terminating. A shorter grace period is not needed, or would kill the pod at once.
                pod.keeps_terminating();
                continue;
            };
            if let Some(budget) = pod.budget() {
                self.budgets.requested(budget, now);
            }
            let timeout = pod.timeout(method, window, now);
            pod.request(method, grace, now);
            self.in_flight.0.push((uid.clone(), method));
            requests.push(LeaveRequest { uid: uid.clone(), name: pod.name.clone(), method, grace, timeout });
        }
        requests
    }

    /// Returns the next time at which the caller has to call [`requests`](Self::requests), [`news`](Self::news) and
    /// [`is_node_watch_due`](Self::is_node_watch_due). A change of a pod may require an earlier call.
    pub fn next_due(&self, now: Instant) -> Option<Instant> {
        let has_turn = self.turn(now);
        let has_room = |method| self.in_flight.has_room_for(method);
        let by_time = self.pods.values().filter(|pod| pod.waits()).filter_map(|pod| {
            let (due, _) = pod.next_request(self.window).filter(|(_, method)| has_room(*method))?;
            if has_turn(pod) { Some(due) } else { Some(due.max(pod.leaves_from(self.window)?)) }
        });
        let by_budget = self.budgets.next_due(&self.pods, &has_turn).filter(|_| has_room(Method::Evict));
        by_time.chain(by_budget).chain(self.overdue_at()).chain(self.blockage.due(self.window)).min()
    }

    pub fn namespaces_to_watch(&self) -> BTreeSet<&str> {
        namespaces_to_watch(&self.pods)
    }

    /// Returns `true` if the caller has to start a watch of the node:
    /// * a terminating pod is overdue, or the pod garbage collector deletes a pod's object; or
    /// * a pod is blocked, and the time at which AWS takes the instance is unknown or depends on a lifecycle hook.
    pub fn is_node_watch_due(&self, now: Instant) -> bool {
        let is_going =
            matches!(self.window.instance_goes, Termination::SoonAtUnknownTime { .. } | Termination::AtTheLatest(_));
        let is_blocked = || self.pods.values().any(|pod| pod.blocked.by().is_some());
        let is_overdue = || self.overdue_at().is_some_and(|at| at <= now);
        !self.is_node_watched && (self.is_collecting || is_overdue() || is_going && is_blocked())
    }

    /// Records that the caller now watches the node and calls [`kubelet_observed`](Self::kubelet_observed).
    pub fn node_watch_started(&mut self) {
        self.is_node_watched = true;
    }

    pub fn kubelet_observed(&mut self, kubelet: Kubelet, now: Instant) {
        self.kubelet = Some(kubelet);
        match kubelet {
            Kubelet::Answers => {
                self.window.dead_since = None;
                self.pods.values_mut().for_each(|pod| pod.not_collected(now));
            }
            Kubelet::Silent => self.window = self.window.on_silence(now),
            Kubelet::Dead => self.window.dead_since = self.window.dead_since.or(Some(now)),
        }
        self.mark_unconfirmed(now);
    }

    /// Returns the time at which the first terminating pod is overdue: its grace period has ended, and a delay has
    /// passed. The delay depends on the kubelet.
    fn overdue_at(&self) -> Option<Instant> {
        let after = match self.kubelet {
            Some(Kubelet::Answers) => STUCK_AFTER,
            Some(Kubelet::Silent | Kubelet::Dead) => Duration::ZERO,
            None if self.is_node_watched => return None,
            None => OVERDUE_AFTER,
        };
        let leaving = self.pods.values().filter_map(|pod| match pod.state {
            PodState::Leaving { by } => Some(by + after),
            _ => None,
        });
        leaving.min()
    }

    /// Stops waiting for terminating pods whose grace period has ended: at once if the kubelet is silent, after `STUCK_AFTER` if
    /// the kubelet answers. If it is silent and AWS takes the instance at an unknown time, does not wait for the grace period.
    fn mark_unconfirmed(&mut self, now: Instant) {
        let (why, after) = match self.kubelet {
            // A kubelet that is only disconnected still grants the grace period.
            Some(Kubelet::Silent | Kubelet::Dead) => (Unconfirmed::Silent, Duration::ZERO),
            Some(Kubelet::Answers) => (Unconfirmed::Stuck, STUCK_AFTER),
            None => return,
        };
        let is_going = matches!(self.window.instance_goes, Termination::SoonAtUnknownTime { .. });
        // The silence shows that the instance has gone.
        let has_gone = is_going && why == Unconfirmed::Silent;
        for pod in self.pods.values_mut() {
            if matches!(pod.state, PodState::Leaving { by } if has_gone || by + after <= now) {
                pod.settle(PodState::Unconfirmed(why));
                self.transitions.push(Transition::Unconfirmed(pod.name.clone(), why));
            }
        }
    }

    /// Returns a predicate for pods that may be evicted or deleted now. Critical pods leave after each ordinary pod has gone or
    /// is blocked. Pods of the tier `Last` leave after all other pods have gone. From [`Tracked::leaves_from`] on, a pod leaves
    /// even if other pods remain.
    fn turn(&self, now: Instant) -> impl Fn(&Tracked) -> bool + use<> {
        let ordinary = |pod: &Tracked| pod.tier == Tier::Ordinary && !(pod.waits() && pod.blocked.by().is_some());
        let others = |pod: &Tracked| pod.tier != Tier::Last;
        let critical_begin = !self.pods.values().any(|pod| pod.has_to_leave() && ordinary(pod));
        let last_begin = !self.pods.values().any(|pod| pod.has_to_leave() && others(pod));
        let window = self.window;
        move |pod| match pod.tier {
            Tier::Ordinary => true,
            Tier::Critical if critical_begin => true,
            Tier::Last if last_begin => true,
            Tier::Critical | Tier::Last => pod.leaves_from(window).is_some_and(|at| at <= now),
        }
    }

    /// Records the API server's answer to a request to evict or delete the pod.
    pub fn answered(&mut self, uid: &PodUid, answer: Answer, now: Instant) {
        self.in_flight.answered(uid);
        let Some(pod) = self.pods.get_mut(uid) else { return };
        let blocked_before = pod.budget().cloned();
        let transition = pod.answered(answer, self.window, now);
        match (pod.state, blocked_before) {
            (PodState::Leaving { .. }, Some(budget)) => self.budgets.evicted(&budget, now),
            (PodState::Waits { due: None }, _) => {
                if let Some(budget) = pod.budget() {
                    self.budgets.refused(budget, pod.history.last_requested_at(), now);
                }
            }
            _ => {}
        }
        let budgets_named = pod.covered_by(|pod| self.budgets.covering(pod));
        self.note(transition);
        self.note(budgets_named);
    }

    fn note(&mut self, transition: Option<Transition>) {
        match transition {
            // The message is equal for all pods of a namespace.
            Some(Transition::Forbidden(right)) if !self.forbidden.insert(right.clone()) => {}
            transition => self.transitions.extend(transition),
        }
    }

    /// Records a change that the watch of the node's pods reports.
    pub fn changed(&mut self, change: Change<Pod>, now: Instant) {
        match change {
            Change::Applied(pod) => self.observe(&pod, Returns::came, now),
            // The garbage collector deleted the object, but the containers may still run.
            Change::Deleted(pod) if self.is_collected(&pod) => self.observe(&pod, Returns::came, now),
            Change::Deleted(pod) => {
                if let Some(uid) = pod.metadata.uid {
                    self.gone(&PodUid(uid), now);
                }
            }
            Change::Listed(pods) => {
                let there: BTreeSet<PodUid> = pods.iter().filter_map(plan).map(|planned| planned.uid).collect();
                let absent: Vec<PodUid> = self.pods.keys().filter(|uid| !there.contains(uid)).cloned().collect();
                for uid in absent {
                    self.gone(&uid, now);
                }
                for pod in &pods {
                    self.observe(pod, Returns::came, now);
                }
            }
        }
    }

    /// Records a change of a namespace's PDBs. If a PDB was deleted or edited, the evictions of its blocked pods are due now.
    pub fn budgets_changed(&mut self, namespace: &str, change: Change<DisruptionBudget>, now: Instant) {
        for released in self.budgets.changed(namespace, change, now) {
            for pod in self.pods.values_mut() {
                pod.release(|by| by.budget() == Some(&released), now);
            }
        }
        for pod in self.pods.values_mut() {
            self.transitions.extend(pod.covered_by(|pod| self.budgets.covering(pod)));
        }
    }

    /// Records that the node was uncordoned during the drain and has been cordoned again.
    pub fn cordoned_again(&mut self, now: Instant) {
        self.returns.cordoned_again(self.clock.at(now));
    }

    /// Records the observed state of a pod. `judge` classifies a new pod.
    fn observe(&mut self, pod: &Pod, judge: fn(&mut Returns, &Pod, Instant) -> Arrival, now: Instant) {
        let Some(Planned { uid, name, grace, tier, has_finished, disposition }) = plan(pod) else { return };
        if self.is_collected(pod) {
            return self.collected(&uid, now);
        }
        if !self.pods.contains_key(&uid) {
            let (claims, labels) = (pod.volume_claims(), pod.metadata.labels.clone().unwrap_or_default());
            let stays = matches!(disposition, Disposition::Stays(_));
            let arrival = if stays { Arrival::BeforeCordon } else { judge(&mut self.returns, pod, now) };
            self.track(&uid, Tracked { claims, labels, ..Tracked::new(name, tier, grace, now) }, arrival);
        }
        let is_unready = pod.status.is_unready();
        let Some(pod) = self.pods.get_mut(&uid) else { return };
        if has_finished && !pod.has_finished {
            pod.finished(now);
        }
        pod.is_unready = is_unready;
        if !matches!(disposition, Disposition::Stays(_)) {
            pod.not_to_be_skipped(now);
        }
        let transition = match disposition {
            Disposition::Stays(why) => {
                pod.stays(why);
                None
            }
            Disposition::Stopped => pod.gone(now),
            Disposition::Leaving { by, given } => {
                let since = by.saturating_sub(given.unwrap_or_default()).unwrap_or(Timestamp::MIN);
                let deletion = Deletion { since: self.clock.instant(since), by: self.clock.instant(by) };
                pod.terminating(deletion, given, self.window, now);
                None
            }
            Disposition::DoNotDisrupt(do_not_disrupt) => {
                let until = do_not_disrupt.until.map(|until| self.clock.instant(until));
                pod.not_to_be_disrupted(do_not_disrupt, until, self.window, now)
            }
            Disposition::Leaves => {
                pod.may_be_disrupted(now);
                None
            }
        };
        self.note(transition);
    }

    /// Starts to track a new pod. A pod with the arrival `Surplus` is ignored.
    fn track(&mut self, uid: &PodUid, mut pod: Tracked, arrival: Arrival) {
        match arrival {
            Arrival::BeforeCordon => {}
            Arrival::AfterCordon { due } => pod.state = PodState::Waits { due: Some(due) },
            Arrival::Returned { due } => {
                (pod.is_returned, pod.state) = (true, PodState::Waits { due });
                self.transitions.push(Transition::Returned(pod.name.clone()));
            }
            Arrival::Surplus => return,
        }
        self.pods.insert(uid.clone(), pod);
    }

    /// Returns `true` if the pod is marked for garbage collection. Always `false` while the kubelet answers.
    fn is_collected(&self, pod: &Pod) -> bool {
        pod.status.conditions.is_collected && self.kubelet != Some(Kubelet::Answers)
    }

    /// Records that the pod garbage collector deletes the pod's object. The kubelet may still run the pod, but cannot report
    /// when the pod stops.
    fn collected(&mut self, uid: &PodUid, now: Instant) {
        if let Some(pod) = self.pods.get_mut(uid) {
            pod.collected(self.window, now);
            self.is_collecting = true;
        }
    }

    fn gone(&mut self, uid: &PodUid, now: Instant) {
        let transition = self.pods.get_mut(uid).and_then(|pod| pod.gone(now));
        self.note(transition);
    }
}

#[cfg(test)]
mod tests;
