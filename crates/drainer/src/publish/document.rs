//! The receipt as a JSON document: wide lines of the log, and the detail of an event.

use jiff::Timestamp;
use spillway_core::drain::plan::PodName;
use spillway_receipt::{Document, Leaving, Pod};

use super::cut;
use crate::receipt::Publication;

/// The lines of the log: one, unless there are many pods.
pub(super) fn lines(publication: &Publication, now: Timestamp) -> Vec<String> {
    spillway_receipt::lines(&publication.receipt, now)
}

/// The detail of the event: it has the node's labels, too.
pub(super) fn detail(publication: &Publication, now: Timestamp) -> String {
    let labels = Some(&publication.node_labels).filter(|labels| !labels.is_empty());
    Document::of(&publication.receipt, now, labels).json()
}

/// The event of a drain that has begun: the receipt so far, with the names of the pods that have to leave, as many as the
/// event bus takes.
pub(super) fn begun(so_far: &Publication, leaving: &[PodName], now: Timestamp) -> String {
    let mut begun = so_far.clone();
    begun.receipt.pods = leaving.iter().map(|name| Pod::AtTheBegin(Leaving { pod: name.to_string() })).collect();
    cut(&mut begun, now);
    detail(&begun, now)
}

#[cfg(test)]
mod tests {
    use spillway_receipt::schema;

    use super::Document;

    #[test]
    fn the_schema_in_the_documents_is_that_of_the_types() {
        schema::is_documented::<Document<'_>>(
            "receipt.schema.json",
            "Spillway's receipt, as a line of the log and as an event",
        );
    }
}
