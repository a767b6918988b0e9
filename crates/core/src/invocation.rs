//! Lambda invocation, and the times by which its last steps must end.

use jiff::{SignedDuration, Timestamp};
use spillway_notice::Home;
use tokio::time::Instant;

use crate::clock::Clock;

/// Time before Lambda's timeout that is reserved for completing the hook or starting another invocation.
const DRAIN_RESERVE: SignedDuration = SignedDuration::from_secs(5);
/// Time before Lambda's timeout that is reserved for starting another invocation.
const HOOK_RESERVE: SignedDuration = SignedDuration::from_millis(2_500);
/// Time before Lambda's timeout that is reserved for the receipt.
const RECEIPT_RESERVE: SignedDuration = SignedDuration::from_millis(500);
/// Time before Lambda's timeout that is reserved for the function's response.
const ANSWER_RESERVE: SignedDuration = SignedDuration::from_millis(100);

#[derive(Debug)]
pub struct Invocation {
    /// Lambda's request id, the same for all retries of an event.
    pub request_id: String,
    pub function: String,
    pub home: Home,
    pub clock: Clock,
    end: Timestamp,
}

impl Invocation {
    /// Creates an invocation that begins now and ends at Lambda's `deadline_ms` (Unix time in milliseconds).
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
        self.before_the_end(DRAIN_RESERVE)
    }

    pub fn completes_until(&self) -> Instant {
        self.before_the_end(HOOK_RESERVE)
    }

    pub fn continues_by(&self) -> Instant {
        self.before_the_end(RECEIPT_RESERVE)
    }

    pub fn announces_until(&self) -> Instant {
        self.before_the_end(ANSWER_RESERVE)
    }

    /// Returns `true` if the invocation must stop draining before `limit`.
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
    fn invocation_knows_its_account_region_and_end() {
        let function = "arn:aws:lambda:eu-west-1:123456789012:function:spillway";
        let invocation = Invocation::begin("r-1", function, 1_000);
        assert_eq!((&*invocation.request_id, &*invocation.function), ("r-1", function));
        assert_eq!((&*invocation.home.account, &*invocation.home.region), ("123456789012", "eu-west-1"));
        assert_eq!(invocation.end, Timestamp::from_second(1).unwrap());
    }

    #[tokio::test(start_paused = true)]
    async fn each_last_step_of_an_invocation_has_its_reserve() {
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
