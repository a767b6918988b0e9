//! A pod in the drain: its state and its next request. Pure.
//!
//! A blocked pod: [`Tracked::blocked`] names the blocker. The pod waits until the blocker goes away (`budgets` observes this for a
//! budget) or its next eviction is due. [`Tracked::next_request`] returns the time from which it is deleted regardless.

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

/// Pause after a failed eviction; each further failure in a row doubles it, up to [`SLOW_RETRY`].
const RETRY: Duration = Duration::from_millis(500);
/// Pause after a failure that lasts longer: a missing right, a second budget, a namespace that is being deleted. kubectl's own
/// pause after a refusal.
const SLOW_RETRY: Duration = Duration::from_secs(5);

#[derive(Debug, Clone)]
pub struct Tracked {
    pub name: PodName,
    pub tier: Tier,
    pub grace: Duration,
    /// Names of its persistent volume claims.
    pub claims: Vec<String>,
    /// Labels when the pod was first observed. PDB selectors match these.
    pub labels: BTreeMap<String, String>,
    /// No container of the pod runs any more.
    pub has_finished: bool,
    /// Runs, and is not Ready.
    pub is_unready: bool,
    /// Tolerates the cordon and came after it: not waited for, never forced.
    pub is_returned: bool,
    pub state: PodState,
    pub blocked: Blocked,
    /// Failed requests in a row, up to the one under way.
    pub failures: Option<Failures>,
    /// Last observed deletion, by any request.
    pub deletion: Option<Deletion>,
    pub history: PodHistory,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodState {
    Stays(Stays),
    /// Still has to be requested to leave: at that time, once its tier has begun; without a time, when its blocker goes away.
    Waits {
        due: Option<Instant>,
    },
    Requested,
    /// Terminating, and should stop by then.
    Leaving {
        by: Instant,
    },
    /// Was terminating, and is not waited for any longer.
    Unconfirmed(Unconfirmed),
    Gone {
        at: Instant,
    },
}

/// Reason not to wait any longer for the end of a terminating pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unconfirmed {
    /// The pod's node has stopped answering: the end will not be reported.
    Silent,
    /// Should have stopped long ago on a node that answers.
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

/// Failed requests in a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failures {
    pub in_a_row: u32,
    pub message: String,
}

impl Tracked {
    /// A pod that was just observed. Its eviction is due.
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

    /// Returns `true` if the pod still has to leave and no request is under way.
    pub fn waits(&self) -> bool {
        matches!(self.state, PodState::Waits { .. })
    }

    /// Returns `true` if the pod still has to leave, or is terminating.
    pub fn has_to_leave(&self) -> bool {
        !self.is_returned
            && matches!(self.state, PodState::Waits { .. } | PodState::Requested | PodState::Leaving { .. })
    }

    /// Time to leave: the pod's grace, and the reserve for its volumes. Volumes with multi-attach are not known yet: they are read
    /// when the pod has gone.
    pub fn needs(&self, window: Window) -> Duration {
        let detaching = if self.claims.is_empty() { Duration::ZERO } else { window.detaching };
        self.grace.saturating_add(detaching)
    }

    /// Time from which the pod is requested to leave beside pods of earlier tiers.
    pub fn leaves_from(&self, window: Window) -> Option<Instant> {
        match self.tier {
            Tier::Ordinary => Some(window.start),
            Tier::Critical => window.critical_from(self.needs(window)),
            Tier::Last => window.last_from(self.needs(window)),
        }
    }

    /// Returns `true` if the pod waits for its blocker, and not after a failure.
    pub fn is_blocked(&self) -> bool {
        self.waits() && self.blocked.by().is_some() && self.failures.is_none()
    }

    pub fn is_finished_and_blocked(&self) -> bool {
        self.has_finished && self.waits() && self.blocked.by().is_some()
    }

    /// Remedy for the last budget that blocked the pod, if the pod is not Ready.
    pub fn advice(&self) -> Option<String> {
        self.blocked.last()?.budget().filter(|_| self.is_unready).map(BudgetName::unready_pods_advice)
    }

    pub fn budget(&self) -> Option<&BudgetName> {
        self.blocked.by().and_then(Blocker::budget)
    }

    /// Time and kind of the next request, without another event. Only a blocked pod with a running container is forced, and only
    /// when respecting its blocker any longer would cost it its clean shutdown.
    pub fn next_request(&self, window: Window) -> Option<(Instant, Method)> {
        let PodState::Waits { due } = self.state else { return None };
        if let Some(Blocker::DoNotDisrupt(_)) = self.blocked.by() {
            return self.annotation_ends(due, window).map(|at| (at, Method::Evict));
        }
        // A refused deletion is followed by an eviction, which disrupts nothing if granted. A lost deletion is repeated.
        let is_forced = self.blocked.by().is_some() && !self.has_finished && !self.is_returned;
        let forced =
            window.forced_from(self.needs(window)).filter(|_| is_forced && !self.history.is_deletion_refused());
        match (forced, due) {
            (Some(forced), Some(due)) if due < forced => Some((due, Method::Evict)),
            (Some(forced), due) => Some((forced.max(self.not_deleted_before(due)), Method::Delete)),
            (None, due) => due.map(|at| (at, Method::Evict)),
        }
    }

    /// End of the blockage: end of the annotation, or forced deletion.
    pub fn blocked_until(&self, window: Window) -> Option<Instant> {
        match (self.blocked.by(), self.state) {
            (Some(Blocker::DoNotDisrupt(_)), PodState::Waits { due }) => self.annotation_ends(due, window),
            _ => window.forced_from(self.needs(window)),
        }
    }

    /// End of the do-not-disrupt annotation: its own, but no later than a critical pod would be requested to leave.
    fn annotation_ends(&self, own: Option<Instant>, window: Window) -> Option<Instant> {
        own.into_iter().chain(window.critical_from(self.needs(window))).min()
    }

    /// Earliest time of a deletion: after a pause since the last one, and not before the API server has time for it.
    fn not_deleted_before(&self, due: Option<Instant>) -> Instant {
        let last = self.history.last_requested_at();
        if self.history.is_forced() { due.into_iter().fold(last + RETRY, Instant::max) } else { last }
    }

    /// Timeout of a request that is sent now, if shorter than that of any call. An eviction after a refused deletion must not delay
    /// the next deletion.
    pub fn timeout(&self, method: Method, window: Window, now: Instant) -> Option<Duration> {
        match method {
            Method::Delete => None,
            Method::Evict if self.history.is_deletion_refused() => Some(LEAST_EVICTION_TIMEOUT),
            Method::Evict => window.eviction_timeout(self.needs(window), now),
        }
    }

    /// Grace of a request that is sent now. `None`: the pod is terminating, and not requested again.
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

    /// Notes a blocker, and the time of the next eviction if the blocker stays.
    pub fn block(&mut self, by: Blocker, due: Option<Instant>) -> Option<Transition> {
        let is_new = self.blocked.last() != Some(&by);
        self.blocked = Blocked::By(by.clone());
        self.failures = None;
        self.state = PodState::Waits { due };
        is_new.then(|| Transition::Blocked(self.name.clone(), by))
    }

    /// Notes that the pod no longer waits: blocker and failures are over.
    pub fn settle(&mut self, state: PodState) {
        self.blocked.end();
        self.failures = None;
        self.state = state;
    }

    /// Records a do-not-disrupt annotation until its end. Ignored once it has ended or the pod is terminating.
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

    /// Records that the pod is left alone. A terminating pod is waited for.
    pub fn stays(&mut self, why: Stays) {
        if matches!(self.state, PodState::Waits { .. } | PodState::Requested) {
            self.settle(PodState::Stays(why));
        }
    }

    pub fn not_to_be_skipped(&mut self, now: Instant) {
        if self.state == PodState::Stays(Stays::Skipped) {
            self.state = PodState::Waits { due: Some(now) };
        }
    }

    /// Records the names of the budgets that cover the pod, if several block it.
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

    /// Records that the pod's containers have ended, so that no budget protects it.
    pub fn finished(&mut self, now: Instant) {
        self.has_finished = true;
        self.release(|_| true, now);
    }

    /// Records that the blocker has gone, if it matches.
    pub fn release(&mut self, is_released: impl Fn(&Blocker) -> bool, now: Instant) {
        if self.is_blocked() && self.blocked.by().is_some_and(is_released) {
            self.settle(PodState::Waits { due: Some(now) });
        }
    }

    /// Records a deletionTimestamp set by anyone. A waiting pod then counts as terminating, unless its grace is longer than its
    /// instance has: then its eviction is due.
    pub fn terminating(&mut self, deletion: Deletion, given: Option<Duration>, window: Window, now: Instant) {
        self.deletion = Some(deletion);
        self.history.least_given = self.history.least_given.into_iter().chain(given).min();
        if self.is_blocked() || self.is_shortened_by_another() {
            self.history.followed = Some(RequestedBy::Another);
        }
        if !self.waits() {
            return;
        }
        match self.grace_now(window, now) {
            // Another drain had more time for the pod, or a person gave it more.
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

    /// Grace of the last request, or the pod's own.
    fn granted(&self) -> Duration {
        match self.history.last_request().map(|last| last.grace) {
            Some(Grace::Clamped(given)) => given,
            Some(Grace::Own) | None => self.grace,
        }
    }

    /// The grace that the pod got, as far as is known, if shorter than its own.
    pub fn shortened_grace(&self) -> Option<Duration> {
        // A refused request gave no grace.
        let ours = self.history.may_be_accepted().then(|| self.granted());
        self.history.least_given.into_iter().chain(ours).min().filter(|given| *given < self.grace)
    }

    /// Returns `true` if another request gave the pod less than this drain did.
    fn is_shortened_by_another(&self) -> bool {
        self.history.last_request().is_some() && self.history.least_given.is_some_and(|seen| seen < self.granted())
    }

    /// Records that the pod's object is removed while its containers may run: they get their grace from now on. They may outlast the
    /// window, unobserved.
    pub fn collected(&mut self, window: Window, now: Instant) {
        let by = match self.state {
            PodState::Waits { .. } | PodState::Requested => later(now, self.granted()),
            PodState::Leaving { by } => by,
            PodState::Stays(_) | PodState::Unconfirmed(_) | PodState::Gone { .. } => return,
        };
        self.settle(PodState::Leaving { by: by.min(window.end - window.margin) });
    }

    /// Records that the pod's node answers: without a deletion the pod still has to leave.
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
        if self.is_blocked() {
            self.history.followed = Some(RequestedBy::Another);
        }
        self.settle(PodState::Gone { at: now });
        Some(Transition::Gone(self.name.clone()))
    }
}

/// Adds a grace period, which may be longer than a clock can count.
fn later(now: Instant, by: Duration) -> Instant {
    const YEAR: Duration = Duration::from_hours(365 * 24);
    now + by.min(YEAR)
}
