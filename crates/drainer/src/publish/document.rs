//! Converts receipts to JSON for log lines and events.

use jiff::Timestamp;
use spillway_core::drain::plan::PodName;
use spillway_receipt::{Document, Leaving, Pod};

use super::cut;
use crate::receipt::Publication;

/// Returns the log lines of a receipt: several lines if the receipt has many pods.
pub(super) fn lines(publication: &Publication, now: Timestamp) -> Vec<String> {
    spillway_receipt::lines(&publication.receipt, now)
}

/// Returns the `detail` of an EventBridge event that contains the receipt and the node's labels.
pub(super) fn detail(publication: &Publication, now: Timestamp) -> String {
    let labels = Some(&publication.node_labels).filter(|labels| !labels.is_empty());
    Document::of(&publication.receipt, now, labels).json()
}

/// Returns the `detail` of an EventBridge event about the start of a drain, with as many pod names as fit.
pub(super) fn begun(so_far: &Publication, leaving: &[PodName], now: Timestamp) -> String {
    let mut begun = so_far.clone();
    begun.receipt.pods = leaving.iter().map(|name| Pod::NameOnly(Leaving { pod: name.to_string() })).collect();
    cut(&mut begun, now);
    detail(&begun, now)
}

#[cfg(test)]
mod tests {
    use spillway_receipt::schema;

    use super::Document;

    #[test]
    fn schema_in_the_docs_equals_the_types() {
        schema::is_documented::<Document<'_>>(
            "receipt.schema.json",
            "Spillway's receipt, as a line of the log and as an event",
        );
    }
}
