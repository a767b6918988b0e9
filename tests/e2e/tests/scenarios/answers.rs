//! Each answer to an eviction has its own consequence, and its own name in the receipt.
//!
//! Reason: connection.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use spillway_bed::gateway::{Answer, Fault, Rule, Which};
use spillway_bed::pods::PodShape;
use spillway_e2e::{Stage, fates};

const SPOT: Duration = Duration::from_secs(120);

/// How often each answer was given, for all pods together.
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
async fn whatever_is_answered_the_pods_leave_and_the_receipt_counts_it_by_name() {
    let stage = Stage::set("names").await;
    // The answer is counted only if it comes before the last pod's end.
    stage.deploy("web", 8, PodShape::default().exits_after(Duration::from_secs(1))).await;
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

    let outcome = stage.lambda.invoke(stage.interrupt(SPOT).await).await;

    let answer = outcome.result.as_ref().expect("it drains");
    assert_eq!(fates(answer)["clean"], 8, "{answer:#}");
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
    assert_eq!(answers(answer), expected.map(|(name, times)| (name.to_owned(), times)).into(), "{answer:#}");
}
