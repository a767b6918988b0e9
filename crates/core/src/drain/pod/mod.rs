//! Tracks one pod of a drain: the pod's state, what blocks its eviction, and the next request. Pure.
//!
//! A *blocker*, such as a PodDisruptionBudget (PDB), prevents the eviction of a pod. A blocked pod waits until the blocker goes
//! away or the next eviction is due. From [`Window::forced_from`] on, a running pod that its PDB blocks is deleted.

mod answers;
pub mod blocker;
mod history;
pub mod transition;

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use super::deadline::{Deletion, Grace, LEAST_EVICTION_TIMEOUT, Window};
use super::do_not_disrupt::DoNotDisrupt;
use super::plan::{PodName, Stays};
use super::request::Method;
use super::tier::Tier;
use blocker::{Blocked, Blocker, BudgetName};
pub use history::{LastRequest, PodHistory, RequestedBy};
use transition::Transition;

/// Pause after the first failed request. Each further failure in a row doubles the pause, up to [`SLOW_RETRY`].
const RETRY: Duration = Duration::from_millis(500);
/// Pause after a failure that is likely to last, such as a missing RBAC permission. Equal to kubectl's pause after a refused
/// eviction.
const SLOW_RETRY: Duration = Duration::from_secs(5);

#[derive(Debug, Clone)]
pub struct Tracked {
    pub name: PodName,
    pub tier: Tier,
    pub grace: Duration,
    /// Names of the pod's persistent volume claims.
    pub claims: Vec<String>,
    /// Labels of the pod when first observed. PDB selectors match these labels.
    pub labels: BTreeMap<String, String>,
    /// No container of the pod runs any more.
    pub has_finished: bool,
    /// The pod runs and is not Ready.
    pub is_unready: bool,
    /// The pod tolerates the cordon, and was placed on the node after the cordon. The drain does not wait for the pod.
    pub is_returned: bool,
    pub state: PodState,
    pub blocked: Blocked,
    /// Failed requests in a row, if the last answer was a failure.
    pub failures: Option<Failures>,
    /// Last observed deletion of the pod.
    pub deletion: Option<Deletion>,
    pub history: PodHistory,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodState {
    Stays(Stays),
    /// No request is under way. The next request is sent at `due`, but not before the turn of the pod's tier. If `due` is `None`,
    /// the pod waits for its blocker to go away, or is a returned pod that the drain leaves alone.
    Waits {
        due: Option<Instant>,
    },
    Requested,
    /// The pod is terminating, and should stop by this time.
    Leaving {
        by: Instant,
    },
    /// The drain no longer waits for the terminating pod.
    Unconfirmed(Unconfirmed),
    Gone {
        at: Instant,
    },
}

/// Reason why the drain no longer waits for a terminating pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unconfirmed {
    /// The kubelet has stopped reporting, so the end of the pod will not be reported.
    Silent,
    /// The pod should have stopped long ago, but is still terminating, although the kubelet answers.
    Stuck,
}

impl Unconfirmed {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Silent => "its node stopped answering while it shut down",
            Self::Stuck => "it is stuck in Terminating, long after its grace, on a node that answers",
        }
    }
}

/// Number of failed requests in a row, and the last error message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failures {
    pub in_a_row: u32,
    pub message: String,
}

impl Tracked {
    /// Creates the state of a pod whose eviction is due at `now`.
    pub fn new(name: PodName, tier: Tier, grace: Duration, now: Instant) -> Self {
        Self {
            name,
            tier,
            grace,
            claims: Vec::new(),
            labels: BTreeMap::new(),
            has_finished: false,
            is_unready: false,
            is_returned: false,
            state: PodState::Waits { due: Some(now) },
            blocked: Blocked::Never,
            failures: None,
            deletion: None,
            history: PodHistory::since(now),
        }
    }

    /// Returns `true` if the pod waits for its next request.
    pub fn waits(&self) -> bool {
        matches!(self.state, PodState::Waits { .. })
    }

    /// Returns `true` if the drain waits for the pod to leave. Always `false` for a pod with `is_returned`.
    pub fn has_to_leave(&self) -> bool {
        !self.is_returned
            && matches!(self.state, PodState::Waits { .. } | PodState::Requested | PodState::Leaving { .. })
    }

    /// Returns the pod's grace period plus the time for detaching its volumes.
    pub fn needs(&self, window: Window) -> Duration {
        let detaching = if self.claims.is_empty() { Duration::ZERO } else { window.detaching };
        self.grace.saturating_add(detaching)
    }

    /// Returns the time from which the pod is evicted even if pods of earlier tiers remain.
    pub fn leaves_from(&self, window: Window) -> Option<Instant> {
        match self.tier {
            Tier::Ordinary => Some(window.start),
            Tier::Critical => window.critical_from(self.needs(window)),
            Tier::Last => window.last_from(self.needs(window)),
        }
    }

    /// Returns `true` if the pod waits for its blocker to go away, and not for a retry after a failure.
    pub fn waits_for_blocker(&self) -> bool {
        self.waits() && self.blocked.by().is_some() && self.failures.is_none()
    }

    pub fn is_finished_and_blocked(&self) -> bool {
        self.has_finished && self.waits() && self.blocked.by().is_some()
    }

    /// Returns advice about the PDB that last blocked the pod, if the pod is not Ready.
    pub fn advice(&self) -> Option<String> {
        self.blocked.last()?.budget().filter(|_| self.is_unready).map(BudgetName::unready_pods_advice)
    }

    pub fn budget(&self) -> Option<&BudgetName> {
        self.blocked.by().and_then(Blocker::budget)
    }

    /// Returns the time and method of the next request if the pod's state stays the same:
    /// * An eviction is sent at `due` of [`PodState::Waits`], or when the do-not-disrupt annotation is no longer respected.
    /// * A blocked pod with a running container is deleted from [`Window::forced_from`] on, if the drain waits for the pod.
    /// * The result is `None` if the pod waits for its blocker to go away, or needs no request.
    pub fn next_request(&self, window: Window) -> Option<(Instant, Method)> {
        let PodState::Waits { due } = self.state else { return None };
        if let Some(Blocker::DoNotDisrupt(_)) = self.blocked.by() {
            // A pod whose annotation has ended is evicted, not deleted. If a PDB then blocks the pod, the pod may be deleted.
            return self.annotation_ends(due, window).map(|at| (at, Method::Evict));
        }
        // If the API server refuses the deletion, the next request is an eviction. A deletion without an answer is repeated.
        let is_forced = self.blocked.by().is_some() && !self.has_finished && !self.is_returned;
        let forced =
            window.forced_from(self.needs(window)).filter(|_| is_forced && !self.history.is_deletion_refused());
        match (forced, due) {
            // An eviction is due before the forced deletion.
            (Some(forced), Some(due)) if due < forced => Some((due, Method::Evict)),
            // The pod is deleted, after a pause if the last deletion failed.
            (Some(forced), due) => Some((forced.max(self.not_deleted_before(due)), Method::Delete)),
            // No deletion is next. If `due` is `None`, the pod waits for its blocker to go away.
            (None, due) => due.map(|at| (at, Method::Evict)),
        }
    }

    /// Returns the time at which the blocking do-not-disrupt annotation ends. For any other blocker, returns the time at which
    /// the pod is deleted despite the blocker. `None`: the pod may stay.
    pub fn blocked_until(&self, window: Window) -> Option<Instant> {
        match (self.blocked.by(), self.state) {
            (Some(Blocker::DoNotDisrupt(_)), PodState::Waits { due }) => self.annotation_ends(due, window),
            _ => window.forced_from(self.needs(window)),
        }
    }

    /// Returns the time from which the do-not-disrupt annotation is ignored: the earlier of the annotation's expiry (`own`)
    /// and [`Window::critical_from`].
    fn annotation_ends(&self, own: Option<Instant>, window: Window) -> Option<Instant> {
        own.into_iter().chain(window.critical_from(self.needs(window))).min()
    }

    /// Returns the earliest time of the next deletion. If the last request was a deletion: `due`, but not earlier than `RETRY`
    /// after that deletion. Otherwise: the time of the last request, which is in the past and sets no limit.
    fn not_deleted_before(&self, due: Option<Instant>) -> Instant {
        let last = self.history.last_requested_at();
        if self.history.is_forced() { due.into_iter().fold(last + RETRY, Instant::max) } else { last }
    }

    /// Returns the timeout of a request that is sent now. `None`: the default timeout of the Kubernetes client.
    pub fn timeout(&self, method: Method, window: Window, now: Instant) -> Option<Duration> {
        match method {
            Method::Delete => None,
            // The eviction must not delay the next deletion.
            Method::Evict if self.history.is_deletion_refused() => Some(LEAST_EVICTION_TIMEOUT),
            Method::Evict => window.eviction_timeout(self.needs(window), now),
        }
    }

    /// Returns the grace period of a request that is sent now. `None`: the pod is terminating, and needs no further
    /// request.
    pub fn grace_now(&self, window: Window, now: Instant) -> Option<Grace> {
        match self.deletion {
            Some(deletion) => window.shortened(deletion, now),
            None => Some(window.grace(self.grace, now)),
        }
    }

    pub fn request(&mut self, method: Method, grace: Grace, now: Instant) {
        self.history.request(LastRequest { at: now, method, grace });
        if let Some(Blocker::DoNotDisrupt(_)) = self.blocked.by() {
            self.blocked.end();
        }
        self.state = PodState::Requested;
    }

    /// Records what blocks the pod. The next eviction is sent at `due`, or when the blocker goes away.
    pub fn block(&mut self, by: Blocker, due: Option<Instant>) -> Option<Transition> {
        let is_new = self.blocked.last() != Some(&by);
        self.blocked = Blocked::By(by.clone());
        self.failures = None;
        self.state = PodState::Waits { due };
        is_new.then(|| Transition::Blocked(self.name.clone(), by))
    }

    /// Sets the state. Clears the blocker and the failures.
    pub fn settle(&mut self, state: PodState) {
        self.blocked.end();
        self.failures = None;
        self.state = state;
    }

    /// Records a do-not-disrupt annotation as the pod's blocker, if the annotation is still respected and no request is under
    /// way.
    pub fn not_to_be_disrupted(
        &mut self,
        by: DoNotDisrupt,
        until: Option<Instant>,
        window: Window,
        now: Instant,
    ) -> Option<Transition> {
        if self.annotation_ends(until, window).is_some_and(|end| end <= now) {
            self.may_be_disrupted(now);
            return None;
        }
        self.waits().then(|| self.block(Blocker::DoNotDisrupt(by), until)).flatten()
    }

    pub fn may_be_disrupted(&mut self, now: Instant) {
        self.release(|by| matches!(by, Blocker::DoNotDisrupt(_)), now);
    }

    /// Records that the drain does not evict the pod. A terminating pod keeps its state.
    pub fn stays(&mut self, why: Stays) {
        if matches!(self.state, PodState::Waits { .. } | PodState::Requested) {
            self.settle(PodState::Stays(why));
        }
    }

    /// Records that the annotation `spillway/drain=skip` was removed. The pod's eviction is due now.
    pub fn not_to_be_skipped(&mut self, now: Instant) {
        if self.state == PodState::Stays(Stays::Skipped) {
            self.state = PodState::Waits { due: Some(now) };
        }
    }

    /// Records the names of the PDBs that select the pod, if several PDBs block the pod.
    pub fn covered_by(&mut self, covering: impl FnOnce(&Self) -> Vec<String>) -> Option<Transition> {
        let Some(Blocker::SeveralBudgets(before)) = self.blocked.by() else { return None };
        let names = covering(self);
        if names.len() < 2 || *before == names {
            return None;
        }
        let by = Blocker::SeveralBudgets(names);
        self.blocked = Blocked::By(by.clone());
        Some(Transition::Blocked(self.name.clone(), by))
    }

    /// Records that the pod's containers have ended. The eviction of a finished pod violates no PDB.
    pub fn finished(&mut self, now: Instant) {
        self.has_finished = true;
        self.release(|_| true, now);
    }

    /// Makes the pod's eviction due now, if `is_released` returns `true` for the pod's blocker.
    pub fn release(&mut self, is_released: impl Fn(&Blocker) -> bool, now: Instant) {
        if self.waits_for_blocker() && self.blocked.by().is_some_and(is_released) {
            self.settle(PodState::Waits { due: Some(now) });
        }
    }

    /// Records that the pod has a `deletionTimestamp`. If the pod would still run when AWS takes the instance, a request with a
    /// shorter grace period is due.
    pub fn terminating(&mut self, deletion: Deletion, given: Option<Duration>, window: Window, now: Instant) {
        self.deletion = Some(deletion);
        self.history.least_given = self.history.least_given.into_iter().chain(given).min();
        if self.waits_for_blocker() || self.is_shortened_by_another() {
            self.history.left_by = Some(RequestedBy::Another);
        }
        if !self.waits() {
            return;
        }
        match self.grace_now(window, now) {
            // The grace period outlasts the instance, so a request with a shorter one is due now.
            Some(_) => {
                if self.failures.is_none() {
                    self.blocked.end();
                }
                self.state = PodState::Waits { due: Some(now) };
            }
            None => self.keeps_terminating(),
        }
    }

    pub fn keeps_terminating(&mut self) {
        if let Some(deletion) = self.deletion {
            self.settle(PodState::Leaving { by: deletion.by });
        }
    }

    /// Returns the grace period of the last request, or the pod's own grace period if no request was sent.
    fn granted(&self) -> Duration {
        match self.history.last_request().map(|last| last.grace) {
            Some(Grace::Clamped(given)) => given,
            Some(Grace::Own) | None => self.grace,
        }
    }

    /// Returns the shortest grace period that any client gave the pod. `None`: no client shortened the pod's own grace period.
    pub fn shortened_grace(&self) -> Option<Duration> {
        // A request that was refused gave the pod no grace period.
        let ours = self.history.may_be_accepted().then(|| self.granted());
        self.history.least_given.into_iter().chain(ours).min().filter(|given| *given < self.grace)
    }

    /// Returns `true` if another client's request gave the pod a shorter grace period than this drain's request.
    fn is_shortened_by_another(&self) -> bool {
        self.history.last_request().is_some() && self.history.least_given.is_some_and(|seen| seen < self.granted())
    }

    /// Records that the pod garbage collector deletes the pod's object. The containers may still run, so the pod counts as
    /// terminating.
    pub fn collected(&mut self, window: Window, now: Instant) {
        let by = match self.state {
            PodState::Waits { .. } | PodState::Requested => later(now, self.granted()),
            PodState::Leaving { by } => by,
            PodState::Stays(_) | PodState::Unconfirmed(_) | PodState::Gone { .. } => return,
        };
        self.settle(PodState::Leaving { by: by.min(window.end - window.margin) });
    }

    /// Records that the kubelet answers. If the pod counted as terminating only because of garbage collection, its eviction is
    /// due now.
    pub fn not_collected(&mut self, now: Instant) {
        let is_leaving = matches!(self.state, PodState::Leaving { .. });
        if is_leaving && self.deletion.is_none() && self.history.accepted_at.is_none() {
            self.settle(PodState::Waits { due: Some(now) });
        }
    }

    pub fn gone(&mut self, now: Instant) -> Option<Transition> {
        if matches!(self.state, PodState::Gone { .. } | PodState::Stays(_)) {
            return None;
        }
        if self.waits_for_blocker() {
            self.history.left_by = Some(RequestedBy::Another);
        }
        self.settle(PodState::Gone { at: now });
        Some(Transition::Gone(self.name.clone()))
    }
}

/// Adds a grace period to `now`, but at most a year, because a huge period would overflow the clock.
fn later(now: Instant, by: Duration) -> Instant {
    const YEAR: Duration = Duration::from_hours(365 * 24);
    now + by.min(YEAR)
}
