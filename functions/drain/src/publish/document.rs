//! The receipt as one JSON document: a wide line of the log, and the detail of an event.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

use super::MOST_BYTES;
use crate::drain::plan::PodName;
use crate::receipt::{Ending, Leaving, Receipt, shorten};

/// Where the document goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum To {
    Log,
    Bus,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Document<'a> {
    timestamp: Timestamp,
    level: &'static str,
    message: String,
    #[serde(flatten)]
    receipt: &'a Receipt,
    /// The node's labels when it was claimed; on the event bus only.
    #[serde(skip_serializing_if = "Option::is_none")]
    node_labels: Option<&'a BTreeMap<String, String>>,
}

impl<'a> Document<'a> {
    fn of(receipt: &'a Receipt, now: Timestamp, to: To) -> Self {
        let (level, ending) = match receipt.ending {
            None => ("INFO", "begun"),
            Some(Ending::Drained) => ("INFO", "drained"),
            Some(Ending::Joined) => ("INFO", "joined"),
            Some(Ending::Ignored) => ("INFO", "ignored"),
            Some(Ending::Continued) => ("INFO", "continued"),
            Some(Ending::Done) => ("INFO", "done"),
            Some(Ending::Failed) => ("ERROR", "failed"),
        };
        let message = format!("{ending}: {}", receipt.reason);
        let labels = &receipt.node_labels;
        let node_labels = (to == To::Bus && !labels.is_empty()).then_some(labels);
        Self { timestamp: now, level, message, receipt, node_labels }
    }
}

/// The document. It has the timestamp and the level that Lambda needs to filter lines by level.
pub(super) fn document(receipt: &Receipt, now: Timestamp, to: To) -> String {
    json(&Document::of(receipt, now, to))
}

fn json(document: &impl Serialize) -> String {
    serde_json::to_string(document).expect("a receipt is plain data with string keys")
}

/// The document of a drain that has begun: the receipt so far, and which pods have to leave.
#[derive(Serialize)]
struct Begun<'a> {
    #[serde(flatten)]
    so_far: Document<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pods_cut: Option<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pods: Vec<Leaving>,
}

/// The event of a drain that has begun; like a receipt it names as many pods as the event bus takes.
pub(super) fn begun(so_far: &Receipt, leaving: &[PodName], now: Timestamp) -> String {
    let pods = leaving.iter().map(|name| Leaving { pod: name.to_string() }).collect();
    let mut begun = Begun { so_far: Document::of(so_far, now, To::Bus), pods_cut: None, pods };
    let too_long = json(&begun).len().saturating_sub(MOST_BYTES);
    begun.pods_cut = shorten(&mut begun.pods, too_long);
    json(&begun)
}

#[cfg(test)]
mod tests {
    use super::Document;
    use crate::test_support::schema;

    #[test]
    fn the_schema_in_the_documents_is_that_of_the_types() {
        schema::is_documented::<Document<'_>>(
            "receipt.schema.json",
            "Spillway's receipt, as a line of the log and as an event",
        );
    }
}
