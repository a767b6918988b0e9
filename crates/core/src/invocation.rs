//! One invocation: who it is, when it began, and what has to be done in it by when.

use jiff::{SignedDuration, Timestamp};
use spillway_notice::Home;
use tokio::time::Instant;

use crate::clock::Clock;

/// What is kept back at the end of an invocation, so that Lambda never cuts off what is under way:
/// for completing a hook or handing on,
const FOR_THE_REST: SignedDuration = SignedDuration::from_secs(5);
/// for handing on what completing left undone,
const FOR_CONTINUING: SignedDuration = SignedDuration::from_millis(2_500);
/// for the receipt,
const FOR_THE_RECEIPT: SignedDuration = SignedDuration::from_millis(500);
/// and for the answer.
const FOR_THE_ANSWER: SignedDuration = SignedDuration::from_millis(100);

#[derive(Debug)]
pub struct Invocation {
    /// Lambda's id of it: the same for all attempts at an event.
    pub request_id: String,
    pub function: String,
    pub home: Home,
    pub clock: Clock,
    end: Timestamp,
}

impl Invocation {
    /// The invocation of that function that begins now, which Lambda ends at `deadline_ms` after the Unix epoch.
    pub fn begin(request_id: &str, function: &str, deadline_ms: u64) -> Self {
        let end = i64::try_from(deadline_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
        let (home, function) = (Home::of_function(function), function.to_owned());
        Self { function, home, ..Self::until(end.unwrap_or(Timestamp::MAX), request_id, Clock::start()) }
    }

    pub fn until(end: Timestamp, request_id: &str, clock: Clock) -> Self {
        let (request_id, function) = (request_id.to_owned(), String::new());
        Self { request_id, function, home: Home::of_function(""), clock, end }
    }

    pub fn drains_until(&self) -> Instant {
        self.before_the_end(FOR_THE_REST)
    }

    pub fn completes_until(&self) -> Instant {
        self.before_the_end(FOR_CONTINUING)
    }

    pub fn continues_by(&self) -> Instant {
        self.before_the_end(FOR_THE_RECEIPT)
    }

    pub fn announces_until(&self) -> Instant {
        self.before_the_end(FOR_THE_ANSWER)
    }

    /// Whether that time comes only when this invocation drains no more.
    pub fn is_over_before(&self, limit: Timestamp) -> bool {
        self.clock.instant(limit) > self.drains_until()
    }

    pub fn is_over(&self) -> bool {
        Instant::now() >= self.drains_until()
    }

    fn before_the_end(&self, reserve: SignedDuration) -> Instant {
        self.clock.instant(self.end.saturating_sub(reserve).unwrap_or(Timestamp::MIN))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn an_invocation_is_the_functions_in_its_account_and_region_until_lambda_ends_it() {
        let function = "arn:aws:lambda:eu-west-1:123456789012:function:spillway";
        let invocation = Invocation::begin("r-1", function, 1_000);
        assert_eq!((&*invocation.request_id, &*invocation.function), ("r-1", function));
        assert_eq!((&*invocation.home.account, &*invocation.home.region), ("123456789012", "eu-west-1"));
        assert_eq!(invocation.end, Timestamp::from_second(1).unwrap());
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_last_in_an_invocation_has_time_of_its_own() {
        let clock = Clock::starting_at(Timestamp::UNIX_EPOCH);
        let at = |ms| Timestamp::UNIX_EPOCH + SignedDuration::from_millis(ms);
        let invocation = Invocation::until(at(900_000), "r-1", clock);
        let began = Instant::now();
        assert_eq!(invocation.drains_until() - began, Duration::from_millis(895_000));
        assert_eq!(invocation.completes_until() - began, Duration::from_millis(897_500));
        assert_eq!(invocation.continues_by() - began, Duration::from_millis(899_500));
        assert_eq!(invocation.announces_until() - began, Duration::from_millis(899_900));
        assert!(!invocation.is_over_before(at(895_000)));
        assert!(invocation.is_over_before(at(895_001)));
    }
}
