//! Retries a call until success, a permanent failure or a deadline.
//!
//! Lambda and SQS retry only after a minute or more, which is too late for a Spot notice.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

/// Pause before the first retry.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// Maximum pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// First pause after the service has throttled a call.
const FIRST_WHEN_THROTTLED: Duration = Duration::from_secs(1);
/// Maximum pause after the service has throttled a call.
const LONGEST_WHEN_THROTTLED: Duration = Duration::from_secs(4);

/// An error that may be transient.
pub trait Transient {
    /// Returns `true` if the same call may succeed a moment later.
    fn is_transient(&self) -> bool;

    /// Returns `true` if the service throttled the call.
    fn is_throttled(&self) -> bool {
        false
    }

    /// Returns the minimum pause that the service demands, for example in a `Retry-After` header.
    fn retry_after(&self) -> Option<Duration> {
        None
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped<E> {
    Failed(E),
    TimeUp,
}

impl<E> Stopped<E> {
    /// Returns the error of the last failed attempt, or `time_up` if no attempt has failed.
    pub fn error_or(self, time_up: E) -> E {
        match self {
            Self::Failed(error) => error,
            Self::TimeUp => time_up,
        }
    }
}

/// Repeats `attempt` until success, a permanent failure or the time `end`. Calls `retrying` before each retry.
pub fn until<T, E: Transient>(
    end: Instant,
    attempt: impl AsyncFnMut() -> Result<T, E>,
    retrying: impl Fn(&E),
) -> impl Future<Output = Result<T, Stopped<E>>> {
    let (mut backoff, mut throttled) = (Backoff::new(), Backoff::when_throttled());
    let mut pause = move |error: &E| {
        if error.is_throttled() { half_jittered(throttled.next_pause()) } else { jittered(backoff.next_pause()) }
    };
    attempts(end, move |error| error.is_transient().then(|| at_least(error, pause(error))), attempt, retrying)
}

/// Like [`until`], with `is_retried` in place of [`Transient`].
pub fn until_final<T, E>(
    end: Instant,
    is_retried: impl Fn(&E) -> bool,
    attempt: impl AsyncFnMut() -> Result<T, E>,
    retrying: impl Fn(&E),
) -> impl Future<Output = Result<T, Stopped<E>>> {
    let mut backoff = Backoff::new();
    attempts(end, move |error| is_retried(error).then(|| jittered(backoff.next_pause())), attempt, retrying)
}

/// Like [`until`], but with the given pauses. A failure after the last pause is not retried.
pub fn with_pauses<T, E: Transient>(
    end: Instant,
    pauses: impl IntoIterator<Item = Duration>,
    attempt: impl AsyncFnMut() -> Result<T, E>,
    retrying: impl Fn(&E),
) -> impl Future<Output = Result<T, Stopped<E>>> {
    let mut pauses = pauses.into_iter();
    let mut pause = move |error: &E| pauses.next().map(|pause| at_least(error, pause));
    attempts(end, move |error| error.is_transient().then(|| pause(error)).flatten(), attempt, retrying)
}

/// Returns the longer of `pause` and the pause that the service demands.
fn at_least<E: Transient>(error: &E, pause: Duration) -> Duration {
    pause.max(error.retry_after().unwrap_or_default())
}

async fn attempts<T, E>(
    end: Instant,
    mut pause_after: impl FnMut(&E) -> Option<Duration>,
    mut attempt: impl AsyncFnMut() -> Result<T, E>,
    retrying: impl Fn(&E),
) -> Result<T, Stopped<E>> {
    let mut stopped = Stopped::TimeUp;
    loop {
        let error = match timeout_at(end, attempt()).await {
            Ok(Ok(done)) => return Ok(done),
            Ok(Err(error)) => error,
            Err(_) => return Err(stopped),
        };
        let Some(pause) = pause_after(&error) else { return Err(Stopped::Failed(error)) };
        if timeout_at(end, sleep(pause)).await.is_err() {
            return Err(Stopped::Failed(error));
        }
        retrying(&error);
        stopped = Stopped::Failed(error);
    }
}

/// Returns a random pause up to `longest` ("full jitter"; AWS Architecture Blog, "Exponential Backoff And Jitter").
#[must_use]
pub fn jittered(longest: Duration) -> Duration {
    longest.mul_f64(fastrand::f64())
}

/// Returns a random pause between half of `longest` and `longest`.
fn half_jittered(longest: Duration) -> Duration {
    longest / 2 + jittered(longest / 2)
}

/// Sequence of pauses. Each pause is twice the previous pause, up to a maximum.
#[derive(Debug, Clone)]
pub struct Backoff {
    next: Duration,
    longest: Duration,
}

impl Backoff {
    #[must_use]
    pub fn new() -> Self {
        Self { next: FIRST_PAUSE, longest: LONGEST_PAUSE }
    }

    fn when_throttled() -> Self {
        Self { next: FIRST_WHEN_THROTTLED, longest: LONGEST_WHEN_THROTTLED }
    }

    pub fn next_pause(&mut self) -> Duration {
        let pause = self.next;
        self.next = (pause * 2).min(self.longest);
        pause
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::future::{pending, ready};

    use futures_util::future::join_all;

    use super::*;

    #[derive(Debug, Clone, PartialEq)]
    enum TestError {
        Busy,
        BusyFor(u64),
        Denied,
        Throttled,
    }

    impl Transient for TestError {
        fn is_transient(&self) -> bool {
            *self != Self::Denied
        }

        fn is_throttled(&self) -> bool {
            *self == Self::Throttled
        }

        fn retry_after(&self) -> Option<Duration> {
            if let Self::BusyFor(seconds) = self { Some(Duration::from_secs(*seconds)) } else { None }
        }
    }

    fn in_seconds(seconds: u64) -> Instant {
        Instant::now() + Duration::from_secs(seconds)
    }

    #[tokio::test(start_paused = true)]
    async fn permanent_failure_is_not_retried() {
        let mut attempts = 0;
        let refuse = async || {
            attempts += 1;
            Err::<(), _>(TestError::Denied)
        };
        assert_eq!(until(in_seconds(60), refuse, |_| ()).await, Err(Stopped::Failed(TestError::Denied)));
        assert_eq!(attempts, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn retries_end_with_the_time_and_the_last_error() {
        let end = in_seconds(60);
        let failing = until(end, || ready(Err::<(), _>(TestError::Busy)), |_| ());
        assert_eq!(failing.await, Err(Stopped::Failed(TestError::Busy)));
        assert_eq!(Instant::now(), end);
    }

    #[tokio::test(start_paused = true)]
    async fn hanging_attempt_ends_with_the_time() {
        let end = in_seconds(5);
        assert_eq!(until(end, pending::<Result<(), TestError>>, |_| ()).await, Err(Stopped::TimeUp));
        assert_eq!(Instant::now(), end);
        let mut attempts = 0;
        let hanging = async || {
            attempts += 1;
            if attempts > 1 { pending().await } else { Err::<(), _>(TestError::Busy) }
        };
        assert_eq!(until(in_seconds(5), hanging, |_| ()).await, Err(Stopped::Failed(TestError::Busy)));
    }

    #[tokio::test(start_paused = true)]
    async fn last_pause_ends_the_retries() {
        let (begin, pauses) = (Instant::now(), [1, 2].map(Duration::from_secs));
        let mut attempts = 0;
        let busy = async || {
            attempts += 1;
            Err::<(), _>(TestError::Busy)
        };
        assert_eq!(with_pauses(in_seconds(60), pauses, busy, |_| ()).await, Err(Stopped::Failed(TestError::Busy)));
        assert_eq!((attempts, begin.elapsed()), (3, Duration::from_secs(3)));
    }

    #[tokio::test(start_paused = true)]
    async fn retry_after_only_lengthens_a_pause() {
        let (begin, pauses) = (Instant::now(), [1, 2].map(Duration::from_secs));
        let mut answers = vec![Ok(()), Err(TestError::BusyFor(0)), Err(TestError::BusyFor(10))];
        let done = with_pauses(in_seconds(60), pauses, async || answers.pop().unwrap(), |_| ()).await;
        assert_eq!((done, begin.elapsed()), (Ok(()), Duration::from_secs(10 + 2)));
    }

    /// EC2's token bucket of an account, refilled at a constant rate.
    struct Bucket {
        left: f64,
        most: f64,
        per_second: f64,
        at: Instant,
        calls: u32,
    }

    impl Bucket {
        fn take(&mut self) -> Result<(), TestError> {
            let now = Instant::now();
            self.left = (self.left + (now - self.at).as_secs_f64() * self.per_second).min(self.most);
            (self.at, self.calls) = (now, self.calls + 1);
            if self.left < 1.0 {
                return Err(TestError::Throttled);
            }
            self.left -= 1.0;
            Ok(())
        }
    }

    /// EC2's limit, and its possible limit for unpaged calls. A caller cannot know the number of callers: with 400 of 500 throttled
    /// at first, 900 calls are the least.
    #[tokio::test(start_paused = true)]
    async fn throttled_storm_ends_soon_and_with_few_calls() {
        for (most, per_second, calls_each) in [(100.0, 20.0, 6), (50.0, 10.0, 11)] {
            let begin = Instant::now();
            let bucket = RefCell::new(Bucket { left: most, most, per_second, at: begin, calls: 0 });
            let storm = (0..500).map(|_| until(in_seconds(120), async || bucket.borrow_mut().take(), |_| ()));
            assert!(join_all(storm).await.iter().all(Result::is_ok));
            let calls = bucket.borrow().calls;
            assert!(calls < 500 * calls_each, "{calls} calls of 500, {per_second} a second");
            let least = (500.0 - most) / per_second;
            let took = begin.elapsed().as_secs_f64();
            assert!(took < least + LONGEST_WHEN_THROTTLED.as_secs_f64(), "{took} s instead of {least} s");
        }
    }
}
