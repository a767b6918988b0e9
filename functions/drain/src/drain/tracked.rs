//! One pod in the drain: what it was told, what was answered, and what comes next. Pure.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use tokio::time::Instant;

use super::deadline::{Grace, Window};
use super::evict::{Answer, Way};
use super::plan::{PodName, Stays, Tier};
use super::rooms::BudgetName;
use super::wishes::Wish;

/// One pod in the drain.
#[derive(Debug, Clone)]
pub(crate) struct Tracked {
    pub(crate) name: PodName,
    pub(crate) tier: Tier,
    pub(crate) grace: Duration,
    /// What it was last told.
    pub(crate) told: Option<(Way, Grace)>,
    /// When it was told; when it came, before that.
    pub(crate) asked: Instant,
    pub(crate) evictions: u32,
    /// How often each answer was given.
    pub(crate) answers: BTreeMap<&'static str, u32>,
    /// What holds it, or held it last.
    pub(crate) hold: Option<Hold>,
    /// What was wrong with the last answer.
    pub(crate) trouble: Option<String>,
    pub(crate) state: State,
    pub(crate) gone_at: Option<Instant>,
}

/// What is to happen to a pod next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// It is left alone.
    Stays(Stays),
    /// It is to be evicted, not before that time, once its tier has begun.
    Due(Instant),
    /// Something holds it. It is asked for again at that time, if not told before.
    Held(Option<Instant>),
    /// An eviction is under way.
    Asked,
    /// It is shutting down, and should have stopped by then.
    Leaving(Instant),
    /// It was shutting down when its node stopped answering. Nobody will tell of its end.
    Unconfirmed,
    /// It has gone.
    Gone,
}

/// What holds a pod although it is to leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Hold {
    /// A PodDisruptionBudget without room.
    Budget(BudgetName),
    /// More budgets than the eviction API can handle.
    SeveralBudgets,
    /// In a namespace that is being deleted nothing is evicted. It deletes its pods itself.
    Namespace,
    /// The pod wishes not to be disturbed.
    Wish(Wish),
}

impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Budget(budget) => write!(f, "PodDisruptionBudget {budget}"),
            Self::SeveralBudgets => f.write_str("more than one PodDisruptionBudget"),
            Self::Namespace => f.write_str("the deletion of its namespace"),
            Self::Wish(wish) => wish.fmt(f),
        }
    }
}

impl Tracked {
    /// A pod of which nothing is known but that it is there.
    pub(crate) fn new(name: PodName, tier: Tier, grace: Duration, state: State, now: Instant) -> Self {
        Self {
            name,
            tier,
            grace,
            told: None,
            asked: now,
            evictions: 0,
            answers: BTreeMap::new(),
            hold: None,
            trouble: None,
            state,
            gone_at: None,
        }
    }

    /// The budget that holds it, or held it last.
    pub(crate) fn budget(&self) -> Option<&BudgetName> {
        match &self.hold {
            Some(Hold::Budget(budget)) => Some(budget),
            _ => None,
        }
    }

    /// Whether it still has to leave and has not been told to.
    pub(crate) fn waits(&self) -> bool {
        matches!(self.state, State::Due(_) | State::Held(_))
    }

    /// When it may be told to leave by the mere passing of time; by deleting it only what holds it
    /// is passed, and only when respecting it any longer would cost the pod its clean shutdown.
    pub(crate) fn due(&self, window: Window) -> Option<(Instant, Way)> {
        match self.state {
            State::Due(at) => Some((at, Way::Evict)),
            State::Held(again) => {
                let forced = window.forced_from(self.grace).map(|from| (from, Way::Delete));
                let again = again.map(|at| (at, Way::Evict));
                match (forced, again) {
                    (Some(forced), Some(again)) if again.0 < forced.0 => Some(again),
                    (Some(forced), _) => Some(forced),
                    (None, again) => again,
                }
            }
            State::Stays(_) | State::Asked | State::Leaving(_) | State::Unconfirmed | State::Gone => None,
        }
    }

    /// Notes that it is being told.
    pub(crate) fn tell(&mut self, way: Way, grace: Grace, now: Instant) {
        self.told = Some((way, grace));
        self.evictions += u32::from(way == Way::Evict);
        self.asked = now;
        self.state = State::Asked;
    }

    /// Counts an answer; says how often it has been given by now.
    pub(crate) fn count(&mut self, answer: &Answer) -> u32 {
        let way = self.told.map_or(Way::Evict, |(way, _)| way);
        let count = self.answers.entry(answer.name(way)).or_default();
        *count += 1;
        *count
    }

    /// Notes that it is shutting down.
    pub(crate) fn leaves(&mut self, now: Instant) {
        let given = match self.told {
            Some((_, Grace::Clamped(given))) => given,
            Some((_, Grace::Own)) | None => self.grace,
        };
        self.trouble = None;
        self.state = State::Leaving(later(now, given));
    }
}

/// A grace period may be longer than a clock can count.
fn later(now: Instant, by: Duration) -> Instant {
    const YEAR: Duration = Duration::from_hours(365 * 24);
    now + by.min(YEAR)
}
