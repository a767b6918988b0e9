//! Results of invocations and their receipts.

use std::collections::BTreeMap;

use serde_json::Value;
use spillway_bed::aws::Delivered;
use spillway_bed::lambda::Outcome;

/// The only delivery of a notice.
pub fn the_one(mut delivered: Vec<Delivered>) -> Value {
    assert_eq!(delivered.len(), 1, "one rule lets the notice through: {delivered:?}");
    delivered.remove(0).event
}

/// The answer of an invocation that did not fail.
pub fn answer(outcome: &Outcome) -> &Value {
    outcome.result.as_ref().unwrap_or_else(|error| panic!("{error}: {outcome:#?}"))
}

/// Asserts that the node is drained, and that this many pods shut down within their grace.
pub fn assert_drained(outcome: &Outcome, clean: usize) {
    let answer = answer(outcome);
    let fates = fates(answer).get("clean").copied().unwrap_or_default();
    assert_eq!((&answer["ending"], fates), (&"drained".into(), clean), "{outcome:#?}");
}

/// The receipt in the log of an invocation.
pub fn receipt(outcome: &Outcome) -> Value {
    let lines = outcome.logs.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut receipts: Vec<Value> = lines.filter(|line| line.get("receipt").is_some()).collect();
    assert_eq!(receipts.len(), 1, "an invocation writes one receipt: {outcome:#?}");
    receipts.remove(0)
}

/// Ending and reason of a receipt.
pub fn ended(outcome: &Outcome) -> (String, String) {
    let receipt = receipt(outcome);
    let text = |field: &str| receipt[field].as_str().unwrap_or_default().to_owned();
    (text("ending"), text("reason"))
}

/// Count of pods by fate.
pub fn fates(receipt: &Value) -> BTreeMap<String, usize> {
    let mut fates = BTreeMap::new();
    for pod in receipt["pods"].as_array().into_iter().flatten() {
        *fates.entry(pod["fate"].as_str().unwrap_or_default().to_owned()).or_default() += 1;
    }
    fates
}
