//! Wall-clock time that stands still when a test stops Tokio's clock.
//!
//! Notices speak of wall-clock time, waiting goes through Tokio. One reading of each at the
//! start of an invocation ties the two together.

use jiff::{SignedDuration, Timestamp};
use tokio::time::{Duration, Instant};

/// The tie between wall-clock time and Tokio's clock, made once for each invocation: after a
/// freeze the monotonic clock is behind by as long as it lasted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    wall: Timestamp,
    instant: Instant,
}

impl Clock {
    /// Ties the two clocks together now.
    pub(crate) fn start() -> Self {
        Self::starting_at(Timestamp::now())
    }

    /// Ties Tokio's clock to a given wall-clock time.
    pub(crate) fn starting_at(wall: Timestamp) -> Self {
        Self { wall, instant: Instant::now() }
    }

    /// When the invocation began.
    pub(crate) fn started(&self) -> Timestamp {
        self.wall
    }

    /// The wall-clock time.
    pub(crate) fn now(&self) -> Timestamp {
        let elapsed = SignedDuration::try_from(self.instant.elapsed()).unwrap_or(SignedDuration::MAX);
        self.wall.saturating_add(elapsed).unwrap_or(Timestamp::MAX)
    }

    /// The instant to wait for so that it is `at`; now, if that has passed.
    pub(crate) fn instant(&self, at: Timestamp) -> Instant {
        let ahead = Duration::try_from(at.duration_since(self.wall)).unwrap_or_default();
        self.instant + ahead
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn forty_eight_hours_pass_in_a_test_without_waiting() {
        let clock = Clock::starting_at(Timestamp::UNIX_EPOCH);
        tokio::time::sleep(Duration::from_hours(48)).await;
        assert_eq!(clock.now(), Timestamp::UNIX_EPOCH + SignedDuration::from_hours(48));
        assert_eq!(clock.instant(clock.now()), Instant::now());
    }
}
