//! Answers to an eviction: each has its own consequence, and its own name in the receipt.
//!
//! Reason: connection.

use std::collections::BTreeMap;

use serde_json::Value;
use spillway_bed::gateway::{Answer, Fault, Rule, Which};
use spillway_e2e::{Stage, answer, assert_drained};

/// Counts of answers for all pods together.
fn answers(receipt: &Value) -> BTreeMap<String, u64> {
    let mut sum = BTreeMap::new();
    for pod in receipt["pods"].as_array().into_iter().flatten() {
        for (name, times) in pod["answers"].as_object().into_iter().flatten() {
            *sum.entry(name.clone()).or_default() += times.as_u64().unwrap_or_default();
        }
    }
    sum
}

#[tokio::test]
async fn each_answer_to_an_eviction_is_counted_by_name() {
    let stage = Stage::set("names").await.with_own_stack().await;
    // An answer counts only before the last pod's end.
    stage.deploy_quick("web", 8).await;
    let gateway = stage.through_gateway().await;
    let faults = [
        Fault::Answer(Answer::throttled(Some(1))),
        Fault::Answer(Answer::kubernetes(401)),
        Fault::Answer(Answer::kubernetes(403)),
        Fault::Answer(Answer::kubernetes(409)),
        Fault::Answer(Answer::kubernetes(503)),
        Fault::Answer(Answer::held_by("web")),
        Fault::Reset,
    ];
    for (n, fault) in faults.into_iter().enumerate() {
        gateway.rules().add(Rule::new("create pods/eviction", Which::Nth(n + 1), fault));
    }

    let outcome = stage.drain().await;

    assert_drained(&outcome, 8);
    let expected = [
        ("evicted", 8),
        ("forbidden", 1),
        ("blocked-by-budget", 1),
        ("no-answer", 1),
        ("refused", 1),
        ("server-error", 1),
        ("throttled", 1),
        ("unauthorized", 1),
    ];
    assert_eq!(answers(answer(&outcome)), expected.map(|(name, times)| (name.to_owned(), times)).into());
}
