//! Converts between the wall-clock times of notices and Tokio's instants.

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// Wall-clock time and Tokio instant of the same moment. Each invocation needs a new `Clock`, because Tokio's clock stops while
/// Lambda freezes the process.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    wall: Timestamp,
    instant: Instant,
}

impl Clock {
    pub fn start() -> Self {
        Self::starting_at(Timestamp::now())
    }

    /// Creates a clock with `wall` as the current wall-clock time.
    pub fn starting_at(wall: Timestamp) -> Self {
        Self { wall, instant: Instant::now() }
    }

    pub fn started(&self) -> Timestamp {
        self.wall
    }

    pub fn now(&self) -> Timestamp {
        self.at(Instant::now())
    }

    pub fn at(&self, instant: Instant) -> Timestamp {
        let ahead =
            SignedDuration::try_from(instant.saturating_duration_since(self.instant)).unwrap_or(SignedDuration::MAX);
        let behind =
            SignedDuration::try_from(self.instant.saturating_duration_since(instant)).unwrap_or(SignedDuration::MAX);
        let at = self.wall.saturating_add(ahead).unwrap_or(Timestamp::MAX);
        at.saturating_sub(behind).unwrap_or(Timestamp::MIN)
    }

    pub fn instant(&self, at: Timestamp) -> Instant {
        let ahead = at.duration_since(self.wall);
        let distance = ahead.unsigned_abs();
        if ahead.is_negative() {
            self.instant.checked_sub(distance).unwrap_or(self.instant)
        } else {
            self.instant + distance
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn virtual_time_moves_the_wall_clock() {
        let clock = Clock::starting_at(Timestamp::UNIX_EPOCH);
        tokio::time::sleep(Duration::from_hours(48)).await;
        assert_eq!(clock.now(), Timestamp::UNIX_EPOCH + SignedDuration::from_hours(48));
        assert_eq!(Clock::starting_at(clock.now()).started(), clock.now());
        assert_eq!(clock.instant(clock.now()), Instant::now());
        assert_eq!(clock.instant(Timestamp::UNIX_EPOCH), Instant::now() - Duration::from_hours(48));
        let before = Timestamp::UNIX_EPOCH - SignedDuration::from_hours(1);
        assert_eq!(clock.instant(before) + Duration::from_hours(49), Instant::now(), "before the clock began");
    }
}
