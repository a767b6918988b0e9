//! What is drawn as it happens: how long things take, and what goes otherwise now and then.

use std::ops::Range;
use std::time::Duration;

use fastrand::Rng;

/// The dice of one component: nobody else's draws change what it throws.
#[derive(Debug)]
pub(crate) struct Dice(Rng);

impl Dice {
    /// The dice of a component of that name.
    pub(crate) fn of(seed: u64, component: &str) -> Self {
        let mixed = |seed: u64, byte| (seed ^ u64::from(byte)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
        Self(Rng::with_seed(component.bytes().fold(seed, mixed)))
    }

    /// A time of so many milliseconds.
    pub(crate) fn ms(&mut self, range: Range<u64>) -> Duration {
        Duration::from_millis(self.0.u64(range))
    }

    /// Whether what happens in so many of a thousand cases happens now.
    pub(crate) fn perhaps(&mut self, of_a_thousand: u32) -> bool {
        self.0.u32(0..1000) < of_a_thousand
    }

    /// A number from 0 on.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0.usize(0..end)
    }

    /// So many milliseconds at most, ahead or behind.
    pub(crate) fn around(&mut self, most_ms: i64) -> i64 {
        self.0.i64(-most_ms..=most_ms)
    }
}
