//! The receipt as one JSON document: a wide line of the log, and the detail of an event.

use jiff::Timestamp;
use spillway_receipt::{Document, Leaving, Pod};

use super::cut;
use crate::drain::plan::PodName;
use crate::receipt::Publication;

/// Where the document goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum To {
    Log,
    Bus,
}

/// The document. The log's has no labels of the node.
pub(super) fn document(publication: &Publication, now: Timestamp, to: To) -> String {
    let labels = &publication.node_labels;
    let node_labels = (to == To::Bus && !labels.is_empty()).then_some(labels);
    Document::of(&publication.receipt, now, node_labels).json()
}

/// The event of a drain that has begun: the receipt so far, with the names of the pods that have to leave, as many as the
/// event bus takes.
pub(super) fn begun(so_far: &Publication, leaving: &[PodName], now: Timestamp) -> String {
    let mut begun = so_far.clone();
    begun.receipt.pods = leaving.iter().map(|name| Pod::AtTheBegin(Leaving { pod: name.to_string() })).collect();
    cut(&mut begun, now);
    document(&begun, now, To::Bus)
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
