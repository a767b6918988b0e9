//! One pod in the drain: its state, and what comes next. Pure.
//!
//! * `blocker`: what can keep it from leaving
//! * `answers`: what each answer of the API server makes of it
//! * `history`: what has been done with it
//! * `transition`: which changes of its state are logged
//!
//! What happens when something blocks a pod: [`Tracked::blocked`] names it, and the pod waits until what blocks it goes away
//! (for a budget, `budgets` knows) or its next eviction is due. [`Tracked::next_request`] says from when on it is deleted
//! all the same.

mod answers;
pub mod blocker;
mod history;
pub mod transition;

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use super::deadline::{Deletion, Grace, LEAST_PATIENCE, Window};
use super::do_not_disrupt::DoNotDisrupt;
use super::plan::{PodName, Stays};
use super::request::Method;
use super::tier::Tier;
use blocker::{Blocked, Blocker, BudgetName};
pub use history::{LastRequest, PodHistory, RequestedBy};
use transition::Transition;

/// When an eviction that failed is tried again; each further failure in a row doubles it, up to [`SLOW_RETRY`].
const RETRY: Duration = Duration::from_millis(500);
/// When what a moment later will hardly have changed is tried again: a missing right, a second budget, a namespace
/// that is being deleted. kubectl's own pause after a refusal.
const SLOW_RETRY: Duration = Duration::from_secs(5);

/// One pod in the drain.
#[derive(Debug, Clone)]
pub struct Tracked {
    pub name: PodName,
    pub tier: Tier,
    /// What it asks for to shut down cleanly.
    pub grace: Duration,
    /// The names of its persistent volume claims.
    pub claims: Vec<String>,
    /// By these budgets choose it, as it had them when it was first seen.
    pub labels: BTreeMap<String, String>,
    /// Nothing of it runs any more.
    pub has_finished: bool,
    /// Runs, and is not Ready.
    pub is_unready: bool,
    /// Tolerates the cordon and came after it: not waited for, never forced.
    pub is_returned: bool,
    pub state: PodState,
    /// What keeps it from leaving, or did.
    pub blocked: Blocked,
    /// The requests that have failed in a row while it waits, or before the one that is under way.
    pub failures: Option<Failures>,
    /// Its deletion as it was last observed, whoever requested it.
    pub deletion: Option<Deletion>,
    pub history: PodHistory,
}

/// How far a pod has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodState {
    /// It is left alone.
    Stays(Stays),
    /// It still has to be requested to leave: at that time, once its tier has begun; without one, when what blocks it goes
    /// away.
    Waits { due: Option<Instant> },
    /// A request that it leave is under way.
    Requested,
    /// It is shutting down, and should have stopped by then.
    Leaving { by: Instant },
    /// It was shutting down, and is not waited for any longer.
    Unconfirmed(Unconfirmed),
    /// It has gone.
    Gone { at: Instant },
}

/// Why a pod is not waited for whose end nobody has reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unconfirmed {
    /// Its node has stopped answering: nobody will.
    Silent,
    /// It should have stopped long ago, and its node answers.
    Stuck,
}

impl Unconfirmed {
    /// The reason in plain words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Silent => "its node stopped answering while it shut down",
            Self::Stuck => "it is stuck in Terminating, long after its grace, on a node that answers",
        }
    }
}

/// Requests that failed, one after another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failures {
    /// How many.
    pub in_a_row: u32,
    /// What the last of them was answered.
    pub message: String,
}

impl Tracked {
    /// A pod of which nothing is known but that it is there. Its eviction is due.
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

    /// Whether it still has to leave and no request is under way.
    pub fn waits(&self) -> bool {
        matches!(self.state, PodState::Waits { .. })
    }

    /// Whether it has yet to leave, or is on its way out.
    pub fn has_to_leave(&self) -> bool {
        !self.is_returned
            && matches!(self.state, PodState::Waits { .. } | PodState::Requested | PodState::Leaving { .. })
    }

    /// How long it needs to leave: its grace, and what is kept for its volumes. Whether they can be attached to several nodes at
    /// once is not known yet: they are read when it has gone.
    pub fn needs(&self, window: Window) -> Duration {
        let detaching = if self.claims.is_empty() { Duration::ZERO } else { window.detaching };
        self.grace.saturating_add(detaching)
    }

    /// Time from which it is requested to leave although pods of earlier tiers are still there.
    pub fn leaves_from(&self, window: Window) -> Option<Instant> {
        match self.tier {
            Tier::Ordinary => Some(window.start),
            Tier::Critical => window.critical_from(self.needs(window)),
            Tier::Last => window.last_from(self.needs(window)),
        }
    }

    /// Whether it waits because something blocks it, and not because a request has failed.
    pub fn is_blocked(&self) -> bool {
        self.waits() && self.blocked.by().is_some() && self.failures.is_none()
    }

    /// Whether it stays because something blocks it, and nothing of it runs that would have to shut down.
    pub fn stays_finished(&self) -> bool {
        self.has_finished && self.waits() && self.blocked.by().is_some()
    }

    /// Remedy for the last budget that blocked the pod, if the pod is not Ready.
    pub fn advice(&self) -> Option<String> {
        self.blocked.last()?.budget().filter(|_| self.is_unready).map(BudgetName::protects_unready)
    }

    /// The budget that blocks it, as far as is known.
    pub fn budget(&self) -> Option<&BudgetName> {
        self.blocked.by().and_then(Blocker::budget)
    }

    /// When and how it is to be requested to leave by the mere passing of time. Only a pod that something blocks is
    /// forced, and only when respecting that any longer would cost it its clean shutdown: never one that has finished.
    pub fn next_request(&self, window: Window) -> Option<(Instant, Method)> {
        let PodState::Waits { due } = self.state else { return None };
        if let Some(Blocker::DoNotDisrupt(_)) = self.blocked.by() {
            return self.annotation_ends(due, window).map(|at| (at, Method::Evict));
        }
        // A deletion that was refused is followed by an eviction: one that is granted disrupts nothing. A lost one is repeated.
        let is_forced = self.blocked.by().is_some() && !self.has_finished && !self.is_returned;
        let forced =
            window.forced_from(self.needs(window)).filter(|_| is_forced && !self.history.is_deletion_refused());
        match (forced, due) {
            (Some(forced), Some(due)) if due < forced => Some((due, Method::Evict)),
            (Some(forced), due) => Some((forced.max(self.not_deleted_before(due)), Method::Delete)),
            (None, due) => due.map(|at| (at, Method::Evict)),
        }
    }

    /// End of what blocks it: of its annotation, or by force.
    pub fn blocked_until(&self, window: Window) -> Option<Instant> {
        match (self.blocked.by(), self.state) {
            (Some(Blocker::DoNotDisrupt(_)), PodState::Waits { due }) => self.annotation_ends(due, window),
            _ => window.forced_from(self.needs(window)),
        }
    }

    /// End of its do-not-disrupt annotation: its own, if it has one, and where a critical pod would be asked to leave.
    fn annotation_ends(&self, own: Option<Instant>, window: Window) -> Option<Instant> {
        own.into_iter().chain(window.critical_from(self.needs(window))).min()
    }

    /// No deletion follows another at once, whatever was answered, nor before the API server has time for it.
    fn not_deleted_before(&self, due: Option<Instant>) -> Instant {
        let last = self.history.last_requested_at();
        if self.history.is_forced() { due.into_iter().fold(last + RETRY, Instant::max) } else { last }
    }

    /// Timeout of a request that is sent now, if shorter than that of any call. An eviction that follows a refused
    /// deletion must not cost the pod its next one.
    pub fn patience(&self, method: Method, window: Window, now: Instant) -> Option<Duration> {
        match method {
            Method::Delete => None,
            Method::Evict if self.history.is_deletion_refused() => Some(LEAST_PATIENCE),
            Method::Evict => window.patience(self.needs(window), now),
        }
    }

    /// The grace with which it would be requested to leave now. `None`: it is leaving already, and is not to be
    /// requested again.
    pub fn grace_now(&self, window: Window, now: Instant) -> Option<Grace> {
        match self.deletion {
            Some(deletion) => window.shortened(deletion, now),
            None => Some(window.grace(self.grace, now)),
        }
    }

    /// Notes that it is being requested to leave.
    pub fn request(&mut self, method: Method, grace: Grace, now: Instant) {
        self.history.request(LastRequest { at: now, method, grace });
        if let Some(Blocker::DoNotDisrupt(_)) = self.blocked.by() {
            self.blocked.end();
        }
        self.state = PodState::Requested;
    }

    /// Notes that something blocks it, and when its eviction is due if nothing releases it before.
    pub fn block(&mut self, by: Blocker, due: Option<Instant>) -> Option<Transition> {
        let is_new = self.blocked.last() != Some(&by);
        self.blocked = Blocked::By(by.clone());
        self.failures = None;
        self.state = PodState::Waits { due };
        is_new.then(|| Transition::Blocked(self.name.clone(), by))
    }

    /// Notes that it waits no longer: nothing blocks it, and no failure counts.
    pub fn settle(&mut self, state: PodState) {
        self.blocked.end();
        self.failures = None;
        self.state = state;
    }

    /// Records a do-not-disrupt annotation, which holds until then. Ignored once it has ended or the pod is terminating.
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

    /// Records that there is no do-not-disrupt annotation, or no longer.
    pub fn may_be_disrupted(&mut self, now: Instant) {
        self.release(|by| matches!(by, Blocker::DoNotDisrupt(_)), now);
    }

    /// Records that it is left alone. A pod that is leaving already is waited for.
    pub fn stays(&mut self, why: Stays) {
        if matches!(self.state, PodState::Waits { .. } | PodState::Requested) {
            self.settle(PodState::Stays(why));
        }
    }

    /// Records that it is not, or no longer, to be skipped.
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

    /// Records that it has finished: no budget is asked any more whether it may go.
    pub fn finished(&mut self, now: Instant) {
        self.has_finished = true;
        self.release(|_| true, now);
    }

    /// Records that what blocked it has gone away, if it is such a blocker.
    pub fn release(&mut self, is_released: impl Fn(&Blocker) -> bool, now: Instant) {
        if self.is_blocked() && self.blocked.by().is_some_and(is_released) {
            self.settle(PodState::Waits { due: Some(now) });
        }
    }

    /// Records a deletionTimestamp set by anyone. A pod that waits goes on as it leaves; unless its grace is longer than its
    /// instance has: then its eviction is due.
    pub fn seen_leaving(&mut self, deletion: Deletion, given: Option<Duration>, window: Window, now: Instant) {
        self.deletion = Some(deletion);
        self.history.least_given = self.history.least_given.into_iter().chain(given).min();
        if self.is_blocked() || self.is_cut_short() {
            self.history.followed = Some(RequestedBy::Another);
        }
        if !self.waits() {
            return;
        }
        match self.grace_now(window, now) {
            // Another drain had more time for it, or a person gave it more than there is.
            Some(_) => {
                if self.failures.is_none() {
                    self.blocked.end();
                }
                self.state = PodState::Waits { due: Some(now) };
            }
            None => self.goes_on(),
        }
    }

    /// Records that it is leaving already, and goes on as it does.
    pub fn goes_on(&mut self) {
        if let Some(deletion) = self.deletion {
            self.settle(PodState::Leaving { by: deletion.by });
        }
    }

    /// The grace that it gets by its last request, or asks for.
    fn granted(&self) -> Duration {
        match self.history.last_request().map(|last| last.grace) {
            Some(Grace::Clamped(given)) => given,
            Some(Grace::Own) | None => self.grace,
        }
    }

    /// The grace that it got, as far as is known, if it is less than it asks for.
    pub fn given_less(&self) -> Option<Duration> {
        // What was refused gave it nothing.
        let ours = self.history.may_be_accepted().then(|| self.granted());
        self.history.least_given.into_iter().chain(ours).min().filter(|given| *given < self.grace)
    }

    /// Whether somebody else gave it less than this drain did.
    fn is_cut_short(&self) -> bool {
        self.history.last_request().is_some() && self.history.least_given.is_some_and(|seen| seen < self.granted())
    }

    /// Records that its object is removed while its containers may run: they are told to end now, if not before. They may
    /// outlast the window, but nobody will have seen them at its end.
    pub fn collected(&mut self, window: Window, now: Instant) {
        let by = match self.state {
            PodState::Waits { .. } | PodState::Requested => later(now, self.granted()),
            PodState::Leaving { by } => by,
            PodState::Stays(_) | PodState::Unconfirmed(_) | PodState::Gone { .. } => return,
        };
        self.settle(PodState::Leaving { by: by.min(window.end - window.margin) });
    }

    /// Records that its node answers: unless somebody deleted it, it has yet to leave.
    pub fn not_collected(&mut self, now: Instant) {
        let is_leaving = matches!(self.state, PodState::Leaving { .. });
        if is_leaving && self.deletion.is_none() && self.history.accepted_at.is_none() {
            self.settle(PodState::Waits { due: Some(now) });
        }
    }

    /// Records that it has gone.
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

/// A grace period may be longer than a clock can count.
fn later(now: Instant, by: Duration) -> Instant {
    const YEAR: Duration = Duration::from_hours(365 * 24);
    now + by.min(YEAR)
}
