//! What an invocation came to, as its log says.

use std::collections::BTreeMap;

use serde_json::Value;
use spillway_bed::aws::Delivered;
use spillway_bed::lambda::Outcome;

/// The only delivery of a notice.
#[must_use]
pub fn the_one(delivered: Vec<Delivered>) -> Value {
    assert_eq!(delivered.len(), 1, "one rule lets the notice through: {delivered:?}");
    delivered.into_iter().next().map(|one| one.event).unwrap_or_default()
}

/// The receipt that an invocation wrote into the log, whether it failed or not.
#[must_use]
pub fn receipt(outcome: &Outcome) -> Value {
    let lines = outcome.logs.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let receipts: Vec<Value> = lines.filter(|line| line.get("receipt").is_some()).collect();
    assert_eq!(receipts.len(), 1, "one receipt an invocation: {outcome:#?}");
    receipts.into_iter().next().unwrap_or_default()
}

/// How an invocation ended, by its receipt: the ending, and the reason if there is one.
#[must_use]
pub fn ended(outcome: &Outcome) -> (String, String) {
    let receipt = receipt(outcome);
    let text = |field: &str| receipt[field].as_str().unwrap_or_default().to_owned();
    (text("ending"), text("reason"))
}

/// The fates of the pods in a receipt, by `namespace/name` without the random tails.
#[must_use]
pub fn fates(receipt: &Value) -> BTreeMap<String, usize> {
    let mut fates = BTreeMap::new();
    for pod in receipt["pods"].as_array().into_iter().flatten() {
        *fates.entry(pod["fate"].as_str().unwrap_or_default().to_owned()).or_default() += 1;
    }
    fates
}
