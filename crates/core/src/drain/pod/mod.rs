//! One pod in the drain: its state, and what comes next. Pure.
//!
//! * `blocker`: what can keep it from leaving
//! * `answers`: what each answer of the API server makes of it
//! * `history`: what has been done with it
//! * `transition`: which changes of its state are logged
//!
//! What happens when something blocks a pod: its state is [`PodState::Blocked`], and stays so until what blocks it goes
//! away (for a budget, `budgets` knows) or `until` has come. [`Tracked::next_request`] says from when on it is deleted
//! all the same.

mod answers;
pub mod blocker;
mod history;
pub mod transition;

use std::time::Duration;

use tokio::time::Instant;

use super::deadline::{Deletion, Grace, Window};
use super::do_not_disrupt::DoNotDisrupt;
use super::plan::{PodName, Stays, Tier};
use super::request::Method;
use blocker::{Blocker, BudgetName};
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
    pub state: PodState,
    /// Its deletion as it was last seen, by whosever request.
    pub deletion: Option<Deletion>,
    pub history: PodHistory,
}

/// What is to happen to a pod next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PodState {
    /// It is left alone.
    Stays(Stays),
    /// Its eviction is due from that time on, once its tier has begun; again, if requests have failed.
    Due { at: Instant, failed: Option<Failed> },
    /// Something blocks it. Its eviction is due at that time, if it is not released before.
    Blocked { by: Blocker, until: Option<Instant> },
    /// A request that it leave is under way, in spite of what stood in its way before.
    Requested { despite: Option<Obstacle> },
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

/// What stood in a pod's way when it was requested to leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    Blocked(Blocker),
    Failed(Failed),
}

/// Requests that failed, one after another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    /// How many.
    pub in_a_row: u32,
    /// What the last of them was answered.
    pub message: String,
    /// What blocks the pod still, as far as is known.
    pub blocked_by: Option<Blocker>,
}

impl PodState {
    /// What blocks the pod, as far as is known.
    pub fn blocker(&self) -> Option<&Blocker> {
        match self {
            Self::Blocked { by, .. } | Self::Requested { despite: Some(Obstacle::Blocked(by)) } => Some(by),
            Self::Due { failed: Some(failed), .. } | Self::Requested { despite: Some(Obstacle::Failed(failed)) } => {
                failed.blocked_by.as_ref()
            }
            Self::Due { failed: None, .. }
            | Self::Requested { despite: None }
            | Self::Stays(_)
            | Self::Leaving { .. }
            | Self::Unconfirmed(_)
            | Self::Gone { .. } => None,
        }
    }

    /// The requests that have failed in a row, the last one before this.
    pub fn failed(&self) -> Option<&Failed> {
        match self {
            Self::Due { failed, .. } => failed.as_ref(),
            Self::Requested { despite: Some(Obstacle::Failed(failed)) } => Some(failed),
            _ => None,
        }
    }

    /// The budget that blocks the pod, as far as is known.
    pub fn budget(&self) -> Option<&BudgetName> {
        self.blocker().and_then(Blocker::budget)
    }

    fn into_obstacle(self) -> Option<Obstacle> {
        match self {
            Self::Blocked { by, .. } => Some(Obstacle::Blocked(by)),
            Self::Due { failed, .. } => failed.map(Obstacle::Failed),
            _ => None,
        }
    }
}

impl Tracked {
    /// A pod of which nothing is known but that it is there. Its eviction is due.
    pub fn new(name: PodName, tier: Tier, grace: Duration, now: Instant) -> Self {
        let history = PodHistory::since(now);
        let state = PodState::Due { at: now, failed: None };
        Self { name, tier, grace, claims: Vec::new(), state, deletion: None, history }
    }

    /// Whether it still has to leave and no request is under way.
    pub fn waits(&self) -> bool {
        matches!(self.state, PodState::Due { .. } | PodState::Blocked { .. })
    }

    /// Whether it has left, is about to, or has been requested to without anything blocking it since.
    pub fn has_left(&self) -> bool {
        match self.state {
            PodState::Requested { .. }
            | PodState::Leaving { .. }
            | PodState::Unconfirmed(_)
            | PodState::Gone { .. } => true,
            PodState::Due { .. } | PodState::Blocked { .. } | PodState::Stays(_) => false,
        }
    }

    /// When and how it is to be requested to leave by the mere passing of time. Only a pod that something blocks is
    /// deleted, and only when respecting that any longer would cost it its clean shutdown.
    pub fn next_request(&self, window: Window) -> Option<(Instant, Method)> {
        let forced = || window.forced_from(self.grace).map(|from| from.max(self.not_deleted_before()));
        let (again, forced) = match &self.state {
            PodState::Blocked { until, .. } => (*until, forced()),
            // Its eviction failed. What blocked it does so still, as far as is known.
            PodState::Due { at, failed: Some(Failed { blocked_by: Some(_), .. }) }
                if self.history.last_method() == Some(Method::Evict) =>
            {
                (Some(*at), forced())
            }
            // A deletion that failed is followed by an eviction too: one that is granted disrupts nothing.
            PodState::Due { at, .. } => (Some(*at), None),
            PodState::Stays(_)
            | PodState::Requested { .. }
            | PodState::Leaving { .. }
            | PodState::Unconfirmed(_)
            | PodState::Gone { .. } => return None,
        };
        match (forced, again) {
            (Some(forced), Some(again)) if again < forced => Some((again, Method::Evict)),
            (Some(forced), _) => Some((forced, Method::Delete)),
            (None, again) => again.map(|at| (at, Method::Evict)),
        }
    }

    /// No deletion follows another at once, whatever was answered.
    fn not_deleted_before(&self) -> Instant {
        let last = self.history.last_requested_at();
        if self.history.last_method() == Some(Method::Delete) { last + RETRY } else { last }
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
        let before = std::mem::replace(&mut self.state, PodState::Requested { despite: None });
        self.state = PodState::Requested { despite: before.into_obstacle() };
    }

    /// Notes that something blocks it, and when its eviction is due if nothing releases it before.
    pub fn block(&mut self, by: Blocker, until: Option<Instant>) -> Option<Transition> {
        let is_new = self.history.blocked_by.as_ref() != Some(&by);
        self.history.blocked_by = Some(by.clone());
        self.state = PodState::Blocked { by: by.clone(), until };
        is_new.then(|| Transition::Blocked(self.name.clone(), by))
    }

    /// Notes that it says that it is not to be disrupted until then. One that is leaving says so too late.
    pub fn not_to_be_disrupted(
        &mut self,
        by: DoNotDisrupt,
        until: Option<Instant>,
        now: Instant,
    ) -> Option<Transition> {
        if until.is_some_and(|until| until <= now) {
            self.may_be_disrupted(now);
            return None;
        }
        self.waits().then(|| self.block(Blocker::DoNotDisrupt(by), until)).flatten()
    }

    /// Notes that it does not say, or no longer, that it is not to be disrupted.
    pub fn may_be_disrupted(&mut self, now: Instant) {
        self.release(|by| matches!(by, Blocker::DoNotDisrupt(_)), now);
    }

    /// Notes that what blocked it has gone away, if it is such a blocker.
    pub fn release(&mut self, is_released: impl Fn(&Blocker) -> bool, now: Instant) {
        if matches!(&self.state, PodState::Blocked { by, .. } if is_released(by)) {
            self.state = PodState::Due { at: now, failed: None };
        }
    }

    /// Notes that it was seen to leave with that grace, by whosever request. If it waits, it goes on as it leaves; unless
    /// that is longer than its instance has: then its eviction is due.
    pub fn seen_leaving(&mut self, deletion: Deletion, given: Option<Duration>, window: Window, now: Instant) {
        self.deletion = Some(deletion);
        self.history.least_given = self.history.least_given.into_iter().chain(given).min();
        if matches!(self.state, PodState::Blocked { .. }) || self.is_cut_short() {
            self.history.followed = Some(RequestedBy::Another);
        }
        if !self.waits() {
            return;
        }
        match self.grace_now(window, now) {
            // Another drain had more time for it, or a person gave it more than there is.
            Some(_) => self.state = PodState::Due { at: now, failed: self.state.failed().cloned() },
            None => self.goes_on(),
        }
    }

    /// Notes that it is leaving already, and goes on as it does.
    pub fn goes_on(&mut self) {
        if let Some(deletion) = self.deletion {
            self.state = PodState::Leaving { by: deletion.by };
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
        let given = self.history.least_given.map_or(self.granted(), |seen| seen.min(self.granted()));
        (given < self.grace).then_some(given)
    }

    /// Whether somebody else gave it less than this drain did.
    fn is_cut_short(&self) -> bool {
        self.history.last_request().is_some() && self.history.least_given.is_some_and(|seen| seen < self.granted())
    }

    /// Notes that it has gone.
    pub fn gone(&mut self, now: Instant) -> Option<Transition> {
        if matches!(self.state, PodState::Gone { .. } | PodState::Stays(_)) {
            return None;
        }
        if matches!(self.state, PodState::Blocked { .. }) {
            self.history.followed = Some(RequestedBy::Another);
        }
        self.state = PodState::Gone { at: now };
        Some(Transition::Gone(self.name.clone()))
    }
}
