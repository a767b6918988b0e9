//! Applies an API server's answer to a pod: sets the pod's next state, and the time of the next request. Pure.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use tokio::time::Instant;

use super::blocker::{Blocked, Blocker, BudgetName};
use super::transition::Transition;
use super::{Failures, PodState, RETRY, RequestedBy, SLOW_RETRY, Tracked, later};
use crate::drain::answer::Answer;
use crate::drain::deadline::Window;

/// Maximum pause after a request without an answer. A spot notice leaves only two minutes for the drain.
const UNANSWERED_RETRY: Duration = Duration::from_secs(2);

impl Tracked {
    /// Updates the pod after the API server's answer to the last request. Returns the change to log.
    pub fn answered(&mut self, answer: Answer, window: Window, now: Instant) -> Option<Transition> {
        let times = self.history.count(&answer);
        // The watch reported a change of the pod before the API server answered its eviction.
        if self.state != PodState::Requested {
            if answer == Answer::Leaving {
                self.accepted(now);
                // Somebody annotated the pod to stay, but only after its eviction was sent. The pod leaves.
                return matches!(self.state, PodState::Stays(_)).then(|| self.leaves(now));
            }
            return None;
        }
        match answer {
            Answer::Leaving => Some(self.leaves(now)),
            Answer::Gone | Answer::Replaced => self.gone(now),
            Answer::BlockedBy { budget } => {
                let namespace = self.name.namespace.clone();
                self.block(Blocker::Budget(BudgetName { namespace, name: budget }), None)
            }
            Answer::BlockedBySeveral => {
                let known = match self.blocked.last() {
                    Some(Blocker::SeveralBudgets(names)) => names.clone(),
                    _ => Vec::new(),
                };
                self.block(Blocker::SeveralBudgets(known), Some(now + SLOW_RETRY))
            }
            Answer::NamespaceTerminating => self.block(Blocker::Namespace, Some(now + SLOW_RETRY)),
            Answer::Throttled { retry_after } => {
                self.failed("the API server is busy".to_owned(), self.again(retry_after, window, now))
            }
            Answer::ServerError { message, retry_after } => self.refused(message, self.again(retry_after, window, now)),
            // The client has dropped the refused token. The next request is sent at once, with a new token.
            Answer::Unauthorized { message } if times == 1 => self.failed(message, now),
            Answer::Forbidden { message } => {
                let right = message.split_once("is forbidden: ").map_or(message.as_str(), |(_, right)| right);
                let forbidden = Transition::Forbidden(right.to_owned());
                self.failed(message, now + SLOW_RETRY);
                Some(forbidden)
            }
            // An eviction that was given up counts as refused. The refusal makes the pod blocked, and only a blocked pod is
            // deleted.
            Answer::Refused { message } | Answer::GivenUp { message } => {
                self.refused(message, self.again(None, window, now))
            }
            Answer::Unauthorized { message } => self.failed(message, self.again(None, window, now)),
            Answer::Unanswered { message } => {
                let pause = self.spread(self.pause().min(UNANSWERED_RETRY));
                self.failed(message, window.again(pause, self.needs(window), now))
            }
        }
    }

    /// Returns the time of the next request after a failure. The pause doubles with each failure in a row, up to
    /// [`SLOW_RETRY`], and is not shorter than `Retry-After`.
    fn again(&self, retry_after: Option<Duration>, window: Window, now: Instant) -> Instant {
        let pause = self.pause().max(retry_after.unwrap_or_default());
        window.again(self.spread(pause), self.needs(window), now)
    }

    fn pause(&self) -> Duration {
        let failures = self.failures.as_ref().map_or(0, |failures| failures.in_a_row);
        (RETRY * 2_u32.saturating_pow(failures)).min(SLOW_RETRY)
    }

    /// Lengthens a pause by up to half. The length depends on the pod's name, so different pods retry at different times.
    fn spread(&self, pause: Duration) -> Duration {
        let mut hasher = DefaultHasher::new();
        self.name.hash(&mut hasher);
        let part = u32::from(u8::try_from(hasher.finish() % 256).unwrap_or(u8::MAX));
        pause + pause * part / 512
    }

    fn accepted(&mut self, now: Instant) {
        self.history.accepted_at.get_or_insert(now);
        let left_by = if self.is_shortened_by_another() { RequestedBy::Another } else { RequestedBy::ThisDrain };
        self.history.left_by = Some(left_by);
    }

    fn leaves(&mut self, now: Instant) -> Transition {
        self.accepted(now);
        let forced = self.blocked.by().filter(|_| self.history.is_forced()).cloned();
        self.settle(PodState::Leaving { by: later(now, self.granted()) });
        match forced {
            Some(by) => Transition::Forced(self.name.clone(), by),
            None => Transition::Evicted(self.name.clone()),
        }
    }

    /// Records a refusal, an error of the API server, or an eviction that was given up. If nothing else blocks the pod, the
    /// failing eviction becomes the pod's blocker.
    fn refused(&mut self, message: String, again: Instant) -> Option<Transition> {
        if let None | Some(Blocker::FailingEviction(_)) = self.blocked.by() {
            self.blocked = Blocked::By(Blocker::FailingEviction(message.clone()));
        }
        self.failed(message, again)
    }

    /// Records a failed request and the time of the next request.
    fn failed(&mut self, message: String, again: Instant) -> Option<Transition> {
        let is_new = self.failures.as_ref().is_none_or(|failures| failures.message != message);
        let in_a_row = self.failures.as_ref().map_or(0, |failures| failures.in_a_row).saturating_add(1);
        let transition = is_new.then(|| Transition::Failed(self.name.clone(), message.clone()));
        self.failures = Some(Failures { in_a_row, message });
        self.state = PodState::Waits { due: Some(again) };
        transition
    }
}
