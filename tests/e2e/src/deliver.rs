//! Delivers an event once, twice, or twice at the same moment, as EventBridge and Lambda may, and asserts that a duplicate does
//! no harm. `SPILLWAY_SEED` draws the deliveries; the default is fixed.
//!
//! Tests that count calls or continuations deliver exactly once, by `stage.lambda.invoke`; so do tests of drains that outlast
//! an invocation, since a duplicate waits as long as the drain.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::atomic::Ordering::Relaxed;

use spillway_bed::lambda::{Outcome, Payload};

use crate::{Stage, receipt};

const FIXED_SEED: u64 = 17;

impl Stage {
    /// Invokes the function at least once; returns the outcome of the invocation that drained.
    pub async fn deliver(&self, event: impl Into<Payload>) -> Outcome {
        let event = event.into();
        let number = self.delivered.fetch_add(1, Relaxed);
        let invoke = || self.lambda.invoke(event.clone());
        let (first, duplicate) = match draw(&self.name, number) {
            0 => (invoke().await, invoke().await),
            1 => {
                let (one, other) = tokio::join!(invoke(), invoke());
                if receipt(&one)["ending"] == "joined" { (other, one) } else { (one, other) }
            }
            _ => return invoke().await,
        };
        assert_harmless(&first, &duplicate);
        first
    }
}

/// Draws one of four numbers for an event of a stage.
fn draw(stage: &str, event: usize) -> u64 {
    let seed = std::env::var("SPILLWAY_SEED");
    let seed: u64 = seed.map_or(FIXED_SEED, |seed| seed.parse().expect("SPILLWAY_SEED is a number"));
    let mut hasher = DefaultHasher::new();
    (seed, stage, event).hash(&mut hasher);
    hasher.finish() % 4
}

/// A duplicate fails only if the event does, and forces no further pod.
fn assert_harmless(first: &Outcome, duplicate: &Outcome) {
    assert!(duplicate.result.is_ok() || first.result.is_err(), "the duplicate fails: {first:#?} {duplicate:#?}");
    let forced_again = forced(duplicate);
    assert!(forced_again.is_subset(&forced(first)), "the duplicate forces pods: {first:#?} {duplicate:#?}");
}

/// UIDs of the pods that an invocation forced.
fn forced(outcome: &Outcome) -> BTreeSet<String> {
    let receipt = receipt(outcome);
    let pods = receipt["pods"].as_array().into_iter().flatten();
    pods.filter(|pod| pod["fate"] == "forced").map(|pod| pod["uid"].to_string()).collect()
}
