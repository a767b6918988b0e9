//! Virtual time, by Tokio's paused clock.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// Wall-clock time at the begin of a simulation.
const BEGIN: Timestamp = Timestamp::constant(1_800_000_000, 0);

/// Begin of a simulation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }

    pub(crate) fn instant(self, elapsed: Duration) -> Instant {
        self.0 + elapsed
    }

    /// Returns the wall-clock time.
    pub(crate) fn now(self) -> Timestamp {
        self.at(Instant::now())
    }

    /// Returns the wall-clock time at an instant.
    pub(crate) fn at(self, instant: Instant) -> Timestamp {
        BEGIN + SignedDuration::try_from(instant - self.0).unwrap_or_default()
    }

    /// Returns the whole second, as the API server and EventBridge write it.
    pub(crate) fn second(self) -> Timestamp {
        Timestamp::from_second(self.now().as_second()).unwrap_or(BEGIN)
    }
}
