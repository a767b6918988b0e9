//! Delivers an event at least once, as AWS does, and holds that a duplicate does no harm.
//!
//! A test that counts what the function asks of others, or takes what it has asked to be invoked with, hands its event over
//! exactly once instead, by `stage.lambda.invoke`; so does one whose drain does not end in its first invocation, since a
//! duplicate waits as long as the drain.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering::Relaxed;

use spillway_bed::lambda::{Outcome, Payload};

use crate::chance::{Times, times};
use crate::{Stage, receipt};

impl Stage {
    /// The function is invoked with an event at least once; answers the invocation that did what was to be done.
    pub async fn deliver(&self, event: impl Into<Payload>) -> Outcome {
        let event = event.into();
        let number = self.delivered.fetch_add(1, Relaxed);
        let invoke = || self.lambda.invoke(event.clone());
        let (first, duplicate) = match times(&self.name, number) {
            Times::Once => return invoke().await,
            Times::Again => (invoke().await, invoke().await),
            Times::AtOnce => {
                let (one, other) = tokio::join!(invoke(), invoke());
                if joined(&one) { (other, one) } else { (one, other) }
            }
        };
        assert_harmless(&first, &duplicate);
        first
    }
}

fn joined(outcome: &Outcome) -> bool {
    receipt(outcome)["ending"] == "joined"
}

/// A duplicate fails only where the event does, and hurries no pod.
fn assert_harmless(first: &Outcome, duplicate: &Outcome) {
    assert!(duplicate.result.is_ok() || first.result.is_err(), "the duplicate fails: {first:#?} {duplicate:#?}");
    let hurried = forced(duplicate);
    assert!(hurried.is_subset(&forced(first)), "the duplicate forces {hurried:?}: {first:#?} {duplicate:#?}");
}

/// The pods that an invocation did not leave their time.
fn forced(outcome: &Outcome) -> BTreeSet<String> {
    let receipt = receipt(outcome);
    let pods = receipt["pods"].as_array().into_iter().flatten();
    pods.filter(|pod| pod["fate"] == "forced").map(|pod| pod["uid"].to_string()).collect()
}
