//! Trying again until something succeeds or its time is up: the one loop for calls to AWS and to the API server.
//!
//! Lambda's own retry comes after a minute, too late for a spot notice, so what fails for a moment is tried again here. What
//! fails for good ends the loop at once.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

/// The first pause: a spot notice leaves two minutes.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause: a service that is back should not find that seconds of two minutes are slept through.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// An error that says whether the same may well succeed a moment later.
pub trait Transient {
    fn is_transient(&self) -> bool;
}

/// Tries until it succeeds, fails for good, or `end` is here; `retrying` hears of each failure that is tried again.
/// Fails with the last error, or with `None` if the time was up before the first attempt had come to anything.
pub(crate) async fn until<T, E: Transient>(
    end: Instant,
    mut attempt: impl AsyncFnMut() -> Result<T, E>,
    retrying: impl Fn(&E),
) -> Result<T, Option<E>> {
    let mut backoff = Backoff::new();
    let mut last_error = None;
    loop {
        let error = match timeout_at(end, attempt()).await {
            Ok(Ok(done)) => return Ok(done),
            Ok(Err(error)) => error,
            Err(_) => return Err(last_error),
        };
        if !error.is_transient() || timeout_at(end, sleep(jittered(backoff.next_pause()))).await.is_err() {
            return Err(Some(error));
        }
        retrying(&error);
        last_error = Some(error);
    }
}

/// Any pause up to this one, so that five hundred functions which were turned away together do not come back together
/// ("full jitter"; AWS Architecture Blog, "Exponential Backoff And Jitter").
pub(crate) fn jittered(longest: Duration) -> Duration {
    longest.mul_f64(fastrand::f64())
}

/// The longest pauses between attempts: each twice the one before, up to two seconds.
#[derive(Debug, Clone)]
pub(crate) struct Backoff(Duration);

impl Backoff {
    /// The pauses of something that has not failed yet.
    pub(crate) fn new() -> Self {
        Self(FIRST_PAUSE)
    }

    /// The longest pause before the next attempt.
    pub(crate) fn next_pause(&mut self) -> Duration {
        let pause = self.0;
        self.0 = (pause * 2).min(LONGEST_PAUSE);
        pause
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    #[derive(Debug, Clone, PartialEq)]
    enum Refusal {
        Busy,
        Denied,
    }

    impl Transient for Refusal {
        fn is_transient(&self) -> bool {
            *self == Self::Busy
        }
    }

    fn in_seconds(seconds: u64) -> Instant {
        Instant::now() + Duration::from_secs(seconds)
    }

    #[tokio::test(start_paused = true)]
    async fn what_fails_for_a_while_is_tried_again_until_it_succeeds() {
        let mut attempts = 0;
        let done = until(
            in_seconds(60),
            async || {
                attempts += 1;
                if attempts < 5 { Err(Refusal::Busy) } else { Ok(attempts) }
            },
            |_| (),
        );
        assert_eq!(done.await, Ok(5));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_refused_for_good_is_not_tried_again() {
        let mut attempts = 0;
        let refuse = async || {
            attempts += 1;
            Err::<(), _>(Refusal::Denied)
        };
        assert_eq!(until(in_seconds(60), refuse, |_| ()).await, Err(Some(Refusal::Denied)));
        assert_eq!(attempts, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn what_keeps_failing_ends_with_its_time_and_its_last_error() {
        let end = in_seconds(60);
        let failing = until(end, || ready(Err::<(), _>(Refusal::Busy)), |_| ());
        assert_eq!(failing.await, Err(Some(Refusal::Busy)));
        assert_eq!(Instant::now(), end);
    }

    #[tokio::test(start_paused = true)]
    async fn what_hangs_is_given_up_when_its_time_is_over_and_says_what_was_wrong_before() {
        let end = in_seconds(5);
        assert_eq!(until(end, pending::<Result<(), Refusal>>, |_| ()).await, Err(None));
        assert_eq!(Instant::now(), end);
        let mut attempts = 0;
        let hanging = async || {
            attempts += 1;
            if attempts > 1 { pending().await } else { Err::<(), _>(Refusal::Busy) }
        };
        assert_eq!(until(in_seconds(5), hanging, |_| ()).await, Err(Some(Refusal::Busy)));
    }

    #[test]
    fn those_that_failed_together_do_not_come_back_together() {
        let pauses: Vec<_> = (0..100).map(|_| jittered(Duration::from_secs(2))).collect();
        assert!(pauses.iter().all(|pause| *pause < Duration::from_secs(2)));
        let soon = pauses.iter().filter(|pause| **pause < Duration::from_secs(1)).count();
        assert!((20..80).contains(&soon), "{soon} of 100 in the first half");
    }
}
