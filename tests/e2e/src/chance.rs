//! Chance: what EventBridge and Lambda may do with any event, which is to hand it over twice, at once or one after the other,
//! and out of its turn. Drawn from `SPILLWAY_SEED`; without it from a fixed seed, so that the gate has no chance in it.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::OnceLock;

/// How often an event is handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Times {
    Once,
    /// Again when the function has answered.
    Again,
    /// Twice at the same moment.
    AtOnce,
}

/// What becomes of that stage's event of that number.
pub(crate) fn times(stage: &str, event: usize) -> Times {
    match drawn(stage, event) % 4 {
        0 => Times::Again,
        1 => Times::AtOnce,
        _ => Times::Once,
    }
}

fn drawn(stage: &str, number: usize) -> u64 {
    let mut hasher = DefaultHasher::new();
    (seed(), stage, number).hash(&mut hasher);
    hasher.finish()
}

/// The seed of a run that names none.
const FIXED: u64 = 17;

fn seed() -> u64 {
    static SEED: OnceLock<u64> = OnceLock::new();
    *SEED.get_or_init(|| {
        std::env::var("SPILLWAY_SEED").map_or(FIXED, |named| named.parse().expect("SPILLWAY_SEED is a number"))
    })
}
