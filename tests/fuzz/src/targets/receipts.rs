//! Receipts, perhaps of another version: written as they were read, and shortened below a length.

use serde::Deserialize as _;
use serde_json::Value;
use spillway_notice::continued;
use spillway_receipt::{Counts, Document, Fate, Receipt};

use crate::{Target, seeds};

pub(super) const TARGET: Target = Target {
    name: "receipts",
    seeds: || {
        let shown = seeds::shown_by("docs/receipt.md").into_iter().filter_map(|text| serde_json::from_str(&text).ok());
        let mut receipts: Vec<Value> = shown.filter(|json| Document::deserialize(json).is_ok()).collect();
        let events = seeds::events_as_values();
        let earlier = events.iter().find_map(|event| event.get(continued::KEY)?.get("earlier"));
        let mut continued = receipts[0].clone();
        continued["earlier"] = earlier.expect("a continuation has earlier invocations").clone();
        receipts.push(continued);
        receipts.iter().map(Value::to_string).collect()
    },
    examine: |input| {
        let Ok(read) = serde_json::from_slice::<Document<'_>>(input) else { return };
        let again: Document<'_> = serde_json::from_str(&read.json()).expect("a written receipt is valid");
        assert_eq!(again, read);
        let records: Vec<_> = read.receipt.records().cloned().collect();
        assert_eq!(Counts::of(&records, &[]).lost, read.receipt.count(Fate::Lost));
        let _ = Counts::of(&records, &read.receipt.earlier);
        shorten(read.receipt.into_owned());
    },
};

/// Asserts that a shortened receipt is short enough or has no pods, and counts all pods.
fn shorten(receipt: Receipt) {
    let whole = Receipt { pods_cut: None, ..receipt };
    let length = |written: &Receipt| serde_json::to_string(written).expect("plain data").len();
    let pods = whole.pods.iter().map(|pod| serde_json::to_string(pod).expect("plain data").len() + ",".len());
    for bytes in pods.take(3).chain([length(&whole) / 2]) {
        let mut cut = whole.clone();
        cut.shorten(bytes);
        assert!(cut.pods.is_empty() || length(&cut) <= length(&whole) - bytes, "not shorter by {bytes}");
        assert_eq!(cut.pods.len() + cut.pods_cut.unwrap_or(0), whole.pods.len(), "a missing pod is not counted");
    }
}
