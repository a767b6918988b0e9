//! One pod in the drain: what it was told, what was answered, and what comes next. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use super::deadline::{Grace, Window};
use super::evict::{Answer, Way};
use super::hold::Hold;
use super::news::News;
use super::plan::{PodName, Stays, Tier};
use super::rooms::BudgetName;

/// When an eviction that failed is tried again.
const RETRY: Duration = Duration::from_millis(500);
/// When what a moment later will hardly have changed: a missing right, a second budget, a namespace
/// that is being deleted. kubectl's own pause after a refusal.
const SLOW_RETRY: Duration = Duration::from_secs(5);

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
    /// When it was first asked to leave.
    pub(crate) first_asked: Option<Instant>,
    /// When the request that it leave was accepted.
    pub(crate) told_at: Option<Instant>,
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

impl Tracked {
    /// A pod of which nothing is known but that it is there.
    pub(crate) fn new(name: PodName, tier: Tier, grace: Duration, state: State, now: Instant) -> Self {
        Self {
            name,
            tier,
            grace,
            told: None,
            asked: now,
            first_asked: None,
            told_at: None,
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
                let forced =
                    window.forced_from(self.grace).map(|from| (from.max(self.not_deleted_before()), Way::Delete));
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

    /// No deletion follows another at once, whatever was answered.
    fn not_deleted_before(&self) -> Instant {
        match self.told {
            Some((Way::Delete, _)) => self.asked + RETRY,
            Some((Way::Evict, _)) | None => self.asked,
        }
    }

    /// Notes that it is being told.
    pub(crate) fn tell(&mut self, way: Way, grace: Grace, now: Instant) {
        self.told = Some((way, grace));
        self.evictions += u32::from(way == Way::Evict);
        self.asked = now;
        self.first_asked.get_or_insert(now);
        self.state = State::Asked;
    }

    /// Takes the answer; says what of it is news.
    pub(crate) fn answered(&mut self, answer: Answer, window: Window, now: Instant) -> Option<News> {
        let times = self.count(&answer);
        // The watch may have told of the pod's end before its eviction was answered.
        if self.state != State::Asked {
            return None;
        }
        match answer {
            Answer::Leaving => Some(self.leaves(now)),
            Answer::Gone | Answer::Replaced => self.gone(now),
            Answer::HeldBy { budget } => {
                let namespace = self.name.namespace.clone();
                self.held(Hold::Budget(BudgetName { namespace, name: budget }), None)
            }
            Answer::HeldBySeveral => self.held(Hold::SeveralBudgets, Some(now + SLOW_RETRY)),
            Answer::NamespaceTerminating => self.held(Hold::Namespace, Some(now + SLOW_RETRY)),
            Answer::Throttled { retry_after } => {
                let again = window.again(retry_after.unwrap_or(RETRY), self.grace, now);
                self.failed("the API server is busy".to_owned(), again)
            }
            Answer::ServerError { message, retry_after } => {
                self.failed(message, window.again(retry_after.unwrap_or(RETRY), self.grace, now))
            }
            // That token has been forgotten: the next request has a new one.
            Answer::Unauthorized { message } => self.failed(message, if times == 1 { now } else { now + RETRY }),
            Answer::Forbidden { message } => {
                let right = message.split_once("is forbidden: ").map_or(message.as_str(), |(_, right)| right);
                let news = News::Forbidden(right.to_owned());
                self.failed(message, now + SLOW_RETRY);
                Some(news)
            }
            Answer::Refused { message } | Answer::Unanswered { message } => self.failed(message, now + RETRY),
        }
    }

    /// Counts an answer; says how often it has been given by now.
    pub(crate) fn count(&mut self, answer: &Answer) -> u32 {
        let way = self.told.map_or(Way::Evict, |(way, _)| way);
        let count = self.answers.entry(answer.name(way)).or_default();
        *count += 1;
        *count
    }

    /// Notes that something holds it, and when it is asked for again if nothing else says when.
    pub(crate) fn held(&mut self, hold: Hold, again: Option<Instant>) -> Option<News> {
        let news = (self.hold.as_ref() != Some(&hold)).then(|| News::Held(self.name.clone(), hold.clone()));
        self.hold = Some(hold);
        self.trouble = None;
        self.state = State::Held(again);
        news
    }

    /// Notes that it has gone.
    pub(crate) fn gone(&mut self, now: Instant) -> Option<News> {
        if matches!(self.state, State::Gone | State::Stays(_)) {
            return None;
        }
        self.state = State::Gone;
        self.gone_at = Some(now);
        Some(News::Gone(self.name.clone()))
    }

    fn leaves(&mut self, now: Instant) -> News {
        let given = match self.told {
            Some((_, Grace::Clamped(given))) => given,
            Some((_, Grace::Own)) | None => self.grace,
        };
        self.trouble = None;
        self.told_at.get_or_insert(now);
        self.state = State::Leaving(later(now, given));
        match (self.told, &self.hold) {
            (Some((Way::Delete, _)), Some(hold)) => News::Forced(self.name.clone(), hold.clone()),
            _ => News::Evicted(self.name.clone()),
        }
    }

    fn failed(&mut self, message: String, again: Instant) -> Option<News> {
        let news = (self.trouble.as_ref() != Some(&message)).then(|| News::Failed(self.name.clone(), message.clone()));
        self.trouble = Some(message);
        self.state = State::Due(again);
        news
    }
}

/// A grace period may be longer than a clock can count.
fn later(now: Instant, by: Duration) -> Instant {
    const YEAR: Duration = Duration::from_hours(365 * 24);
    now + by.min(YEAR)
}
