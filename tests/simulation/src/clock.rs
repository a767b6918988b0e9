//! The one time of a simulation, by Tokio's paused clock.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// When a simulation begins, by the wall clock.
const BEGIN: Timestamp = Timestamp::constant(1_800_000_000, 0);

/// When a simulation began, and so what time it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock(Instant);

impl Clock {
    /// The clock of a simulation that begins now.
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// How long the simulation has gone on.
    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }

    /// The instant so long after the beginning.
    pub(crate) fn instant(self, elapsed: Duration) -> Instant {
        self.0 + elapsed
    }

    /// The wall-clock time.
    pub(crate) fn now(self) -> Timestamp {
        self.at(Instant::now())
    }

    /// What time it is at an instant.
    pub(crate) fn at(self, instant: Instant) -> Timestamp {
        BEGIN + SignedDuration::try_from(instant - self.0).unwrap_or_default()
    }

    /// The whole second, as the API server and EventBridge write it.
    pub(crate) fn second(self) -> Timestamp {
        Timestamp::from_second(self.now().as_second()).unwrap_or(BEGIN)
    }
}
