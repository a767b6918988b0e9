//! One pod in the drain: what it was told, what was answered, and what comes next. Pure.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use tokio::time::Instant;

use super::blocker::Blocker;
use super::deadline::{Deletion, Grace, Window};
use super::disruptions_allowed::BudgetName;
use super::evict::{Answer, Method};
use super::plan::{OwnerUid, PodName, Stays, Tier};
use super::transition::Transition;

/// The longest pause while no answer comes at all: asking burdens nobody, and an API server that is back should not find
/// that seconds of a spot notice's two minutes are slept through.
const UNANSWERED_RETRY: Duration = Duration::from_secs(2);
/// When an eviction that failed is tried again; each further failure in a row doubles it, up to [`SLOW_RETRY`].
const RETRY: Duration = Duration::from_millis(500);
/// When what a moment later will hardly have changed: a missing right, a second budget, a namespace
/// that is being deleted. kubectl's own pause after a refusal.
const SLOW_RETRY: Duration = Duration::from_secs(5);

/// One pod in the drain.
#[derive(Debug, Clone)]
pub(crate) struct Tracked {
    pub(crate) name: PodName,
    pub(crate) owner: Option<OwnerUid>,
    pub(crate) tier: Tier,
    pub(crate) grace: Duration,
    /// What it was last told.
    pub(crate) told: Option<(Method, Grace)>,
    /// When it was told; when it came, before that.
    pub(crate) asked: Instant,
    /// When it was first asked to leave.
    pub(crate) first_asked: Option<Instant>,
    /// When the request that it leave was accepted.
    pub(crate) told_at: Option<Instant>,
    pub(crate) evictions: u32,
    /// How many requests have failed in a row.
    failures: u32,
    /// How often each answer was given.
    pub(crate) answers: BTreeMap<&'static str, u32>,
    /// What holds it, or held it last.
    pub(crate) hold: Option<Blocker>,
    /// What was wrong with the last answer.
    pub(crate) trouble: Option<String>,
    pub(crate) state: PodState,
    /// Its deletion as it was last seen, by whosever request.
    pub(crate) deletion: Option<Deletion>,
    /// The least grace that the API server said it was given, by whomever.
    pub(crate) seen_given: Option<Duration>,
    /// RequestedBy request it followed when it left, if that is known.
    pub(crate) followed: Option<RequestedBy>,
    pub(crate) gone_at: Option<Instant>,
}

/// RequestedBy request made a pod leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestedBy {
    /// This drain's.
    ThisDrain,
    /// That of another notice's drain of the node, or a person's.
    Another,
}

/// What is to happen to a pod next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PodState {
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
    pub(crate) fn new(name: PodName, tier: Tier, grace: Duration, state: PodState, now: Instant) -> Self {
        Self {
            name,
            owner: None,
            tier,
            grace,
            told: None,
            asked: now,
            first_asked: None,
            told_at: None,
            evictions: 0,
            failures: 0,
            answers: BTreeMap::new(),
            hold: None,
            trouble: None,
            state,
            deletion: None,
            seen_given: None,
            followed: None,
            gone_at: None,
        }
    }

    /// The budget that holds it, or held it last.
    pub(crate) fn budget(&self) -> Option<&BudgetName> {
        match &self.hold {
            Some(Blocker::Budget(budget)) => Some(budget),
            _ => None,
        }
    }

    /// Whether it still has to leave and has not been told to.
    pub(crate) fn waits(&self) -> bool {
        matches!(self.state, PodState::Due(_) | PodState::Held(_))
    }

    /// When it may be told to leave by the mere passing of time; by deleting it only what holds it
    /// is passed, and only when respecting it any longer would cost the pod its clean shutdown.
    pub(crate) fn due(&self, window: Window) -> Option<(Instant, Method)> {
        let forced = || window.forced_from(self.grace).map(|from| from.max(self.not_deleted_before()));
        let (again, forced) = match (self.state, self.told) {
            (PodState::Held(again), _) => (again, forced()),
            // Its eviction failed. What held it does so still, as far as is known.
            (PodState::Due(at), Some((Method::Evict, _))) if self.trouble.is_some() && self.hold.is_some() => {
                (Some(at), forced())
            }
            // A deletion that failed is followed by an eviction too: one that is granted passes nothing.
            (PodState::Due(at), _) => (Some(at), None),
            (
                PodState::Stays(_) | PodState::Asked | PodState::Leaving(_) | PodState::Unconfirmed | PodState::Gone,
                _,
            ) => return None,
        };
        match (forced, again) {
            (Some(forced), Some(again)) if again < forced => Some((again, Method::Evict)),
            (Some(forced), _) => Some((forced, Method::Delete)),
            (None, again) => again.map(|at| (at, Method::Evict)),
        }
    }

    /// No deletion follows another at once, whatever was answered.
    fn not_deleted_before(&self) -> Instant {
        match self.told {
            Some((Method::Delete, _)) => self.asked + RETRY,
            Some((Method::Evict, _)) | None => self.asked,
        }
    }

    /// The grace with which it is told to leave, if now. `None`: it is leaving already, and goes on as it was told.
    pub(crate) fn grace_now(&mut self, window: Window, now: Instant) -> Option<Grace> {
        let Some(deletion) = self.deletion else { return Some(window.grace(self.grace, now)) };
        let shortened = window.shortened(deletion, now);
        if shortened.is_none() {
            self.state = PodState::Leaving(deletion.by);
        }
        shortened
    }

    /// Notes that it is being told.
    pub(crate) fn tell(&mut self, way: Method, grace: Grace, now: Instant) {
        self.told = Some((way, grace));
        self.evictions += u32::from(way == Method::Evict);
        self.asked = now;
        self.first_asked.get_or_insert(now);
        self.state = PodState::Asked;
    }

    /// Takes the answer; says what of it is news.
    pub(crate) fn answered(&mut self, answer: Answer, window: Window, now: Instant) -> Option<Transition> {
        let times = self.count(&answer);
        // The watch may have told of the pod's end before its eviction was answered.
        if self.state != PodState::Asked {
            if answer == Answer::Leaving {
                self.accepted(now);
            }
            return None;
        }
        match answer {
            Answer::Leaving => Some(self.leaves(now)),
            Answer::Gone | Answer::Replaced => self.gone(now),
            Answer::HeldBy { budget } => {
                let namespace = self.name.namespace.clone();
                self.held(Blocker::Budget(BudgetName { namespace, name: budget }), None)
            }
            Answer::HeldBySeveral => self.held(Blocker::SeveralBudgets, Some(now + SLOW_RETRY)),
            Answer::NamespaceTerminating => self.held(Blocker::Namespace, Some(now + SLOW_RETRY)),
            Answer::Throttled { retry_after } => {
                self.failed("the API server is busy".to_owned(), self.again(retry_after, window, now))
            }
            Answer::ServerError { message, retry_after } => self.refused(message, self.again(retry_after, window, now)),
            // That token has been forgotten: the next request has a new one.
            Answer::Unauthorized { message } if times == 1 => self.failed(message, now),
            Answer::Forbidden { message } => {
                let right = message.split_once("is forbidden: ").map_or(message.as_str(), |(_, right)| right);
                let news = Transition::Forbidden(right.to_owned());
                self.failed(message, now + SLOW_RETRY);
                Some(news)
            }
            Answer::Refused { message } => self.refused(message, self.again(None, window, now)),
            Answer::Unauthorized { message } => self.failed(message, self.again(None, window, now)),
            Answer::Unanswered { message } => {
                let pause = self.pause().min(UNANSWERED_RETRY);
                self.failed(message, self.again(Some(pause), window, now))
            }
        }
    }

    /// When it is asked for again after a failure: as late as the API server asks for, or the later the more have failed in
    /// a row. A webhook that fails for as long as a hook holds the instance would be asked millions of times.
    fn again(&self, retry_after: Option<Duration>, window: Window, now: Instant) -> Instant {
        window.again(self.spread(retry_after.unwrap_or_else(|| self.pause())), self.grace, now)
    }

    fn pause(&self) -> Duration {
        (RETRY * 2_u32.saturating_pow(self.failures)).min(SLOW_RETRY)
    }

    /// Such a pause or up to half as long again, always the same for a pod: those that a busy API server turned away
    /// together do not come back together.
    fn spread(&self, pause: Duration) -> Duration {
        let mut hasher = DefaultHasher::new();
        self.name.hash(&mut hasher);
        let part = u32::from(u8::try_from(hasher.finish() % 256).unwrap_or(u8::MAX));
        pause + pause * part / 512
    }

    /// Counts an answer; says how often it has been given by now.
    pub(crate) fn count(&mut self, answer: &Answer) -> u32 {
        let way = self.told.map_or(Method::Evict, |(way, _)| way);
        let count = self.answers.entry(answer.name(way)).or_default();
        *count += 1;
        *count
    }

    /// Notes that something holds it, and when it is asked for again if nothing else says when.
    pub(crate) fn held(&mut self, hold: Blocker, again: Option<Instant>) -> Option<Transition> {
        let news = (self.hold.as_ref() != Some(&hold)).then(|| Transition::Held(self.name.clone(), hold.clone()));
        self.hold = Some(hold);
        self.trouble = None;
        self.failures = 0;
        self.state = PodState::Held(again);
        news
    }

    /// Notes that it was seen to leave with that grace, by whosever request.
    pub(crate) fn seen_leaving(&mut self, given: Option<Duration>) {
        self.seen_given = self.seen_given.into_iter().chain(given).min();
        if matches!(self.state, PodState::Held(_)) || self.is_cut_short() {
            self.followed = Some(RequestedBy::Another);
        }
    }

    /// The grace that it gets by what it was last told, or asks for.
    fn granted(&self) -> Duration {
        match self.told {
            Some((_, Grace::Clamped(given))) => given,
            Some((_, Grace::Own)) | None => self.grace,
        }
    }

    /// The grace that it got, as far as is known, if it is less than it asks for.
    pub(crate) fn given_less(&self) -> Option<Duration> {
        let given = self.seen_given.map_or(self.granted(), |seen| seen.min(self.granted()));
        (given < self.grace).then_some(given)
    }

    /// Whether somebody else gave it less than we told it.
    fn is_cut_short(&self) -> bool {
        self.told.is_some() && self.seen_given.is_some_and(|seen| seen < self.granted())
    }

    /// Notes that it has gone.
    pub(crate) fn gone(&mut self, now: Instant) -> Option<Transition> {
        if matches!(self.state, PodState::Gone | PodState::Stays(_)) {
            return None;
        }
        if matches!(self.state, PodState::Held(_)) {
            self.followed = Some(RequestedBy::Another);
        }
        self.state = PodState::Gone;
        self.gone_at = Some(now);
        Some(Transition::Gone(self.name.clone()))
    }

    /// Notes that the request that it leave was accepted.
    fn accepted(&mut self, now: Instant) {
        self.told_at.get_or_insert(now);
        self.followed = Some(if self.is_cut_short() { RequestedBy::Another } else { RequestedBy::ThisDrain });
    }

    fn leaves(&mut self, now: Instant) -> Transition {
        self.trouble = None;
        self.failures = 0;
        self.accepted(now);
        self.state = PodState::Leaving(later(now, self.granted()));
        match (self.told, &self.hold) {
            (Some((Method::Delete, _)), Some(hold)) => Transition::Forced(self.name.clone(), hold.clone()),
            _ => Transition::Evicted(self.name.clone()),
        }
    }

    /// Notes that the API server refused or failed for a reason that may be the pod's, such as an admission webhook that
    /// says no or is itself down. That holds a pod as a budget does, and may last as long.
    fn refused(&mut self, message: String, again: Instant) -> Option<Transition> {
        if matches!(self.hold, None | Some(Blocker::FailingEviction(_))) {
            self.hold = Some(Blocker::FailingEviction(message.clone()));
        }
        self.failed(message, again)
    }

    fn failed(&mut self, message: String, again: Instant) -> Option<Transition> {
        let news =
            (self.trouble.as_ref() != Some(&message)).then(|| Transition::Failed(self.name.clone(), message.clone()));
        self.trouble = Some(message);
        self.failures = self.failures.saturating_add(1);
        self.state = PodState::Due(again);
        news
    }
}

/// A grace period may be longer than a clock can count.
fn later(now: Instant, by: Duration) -> Instant {
    const YEAR: Duration = Duration::from_hours(365 * 24);
    now + by.min(YEAR)
}
