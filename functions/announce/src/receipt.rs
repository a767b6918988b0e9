//! Predicates on receipts.

use spillway_receipt::{Ending, Fate, Receipt};

/// Returns `true` if the ending of the receipt is final. The ending `Ignored` is final only if pods were lost.
pub(crate) fn is_over(receipt: &Receipt) -> bool {
    match receipt.ending {
        Some(Ending::Drained | Ending::Done | Ending::Failed) => true,
        Some(Ending::Ignored) => receipt.count(Fate::Lost) > 0,
        Some(Ending::Joined | Ending::Continued) | None => false,
    }
}

/// Returns `true` if both receipts are for the same notice and the same instance.
pub(crate) fn are_of_one_drain(one: &Receipt, other: &Receipt) -> bool {
    one.instance == other.instance && one.notice.event_id == other.notice.event_id
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::{event, test_support};

    #[test]
    fn receipts_of_the_drain_function_are_read_without_loss() {
        for (detail_type, test) in [
            ("Spillway Receipt", "the_receipt_of_a_drain_as_the_log_has_it"),
            ("Spillway Receipt", "the_receipt_of_a_drain_that_is_continued"),
            ("Spillway Drain Begun", "the_event_of_a_drain_that_has_begun"),
        ] {
            let written = test_support::written(test);
            let body = json!({"id": "b-1", "detail-type": detail_type, "source": "spillway", "account": "1",
                "detail": written});
            let event = event::read(&body.to_string(), "1").expect("an event of ours");
            let mut read = json!(event.receipt);
            for around in ["timestamp", "level", "message"] {
                read[around] = written[around].clone();
            }
            if !event.node_labels.is_empty() {
                read["node_labels"] = json!(event.node_labels);
            }
            assert_eq!(read, written);
        }
    }
}
