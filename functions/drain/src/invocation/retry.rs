//! How long to pause between attempts at something that has to succeed.

use std::time::Duration;

/// The pauses between attempts at something that has to succeed: short at first, because a
/// spot notice leaves two minutes, and never longer than two seconds.
#[derive(Debug, Clone)]
pub(crate) struct Backoff(Duration);

impl Backoff {
    const FIRST: Duration = Duration::from_millis(100);
    const LONGEST: Duration = Duration::from_secs(2);

    pub(crate) fn new() -> Self {
        Self(Self::FIRST)
    }

    /// The pause before the next attempt.
    pub(crate) fn next_pause(&mut self) -> Duration {
        let pause = self.0;
        self.0 = (pause * 2).min(Self::LONGEST);
        pause
    }
}
