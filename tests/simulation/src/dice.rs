//! Random durations and choices during a simulation.

use std::ops::Range;
use std::time::Duration;

use fastrand::Rng;

/// Random numbers of one component, independent of the draws of the others.
#[derive(Debug)]
pub(crate) struct Dice(Rng);

impl Dice {
    pub(crate) fn of(seed: u64, component: &str) -> Self {
        let mixed = |seed: u64, byte| (seed ^ u64::from(byte)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
        Self(Rng::with_seed(component.bytes().fold(seed, mixed)))
    }

    pub(crate) fn ms(&mut self, range: Range<u64>) -> Duration {
        Duration::from_millis(self.0.u64(range))
    }

    pub(crate) fn perhaps(&mut self, of_a_thousand: u32) -> bool {
        self.0.u32(0..1000) < of_a_thousand
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0.usize(0..end)
    }

    /// Returns a difference of at most `most_ms` milliseconds.
    pub(crate) fn around(&mut self, most_ms: i64) -> i64 {
        self.0.i64(-most_ms..=most_ms)
    }
}
