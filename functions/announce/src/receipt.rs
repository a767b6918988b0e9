//! Questions of messages about a receipt.

use spillway_receipt::{Ending, Fate, Receipt};

/// Returns `true` if the notice has a final result. An ignored notice has one only if pods were lost, because the hook
/// ended early.
pub(crate) fn is_over(receipt: &Receipt) -> bool {
    match receipt.ending {
        Some(Ending::Drained | Ending::Done | Ending::Failed) => true,
        Some(Ending::Ignored) => receipt.count(Fate::Lost) > 0,
        Some(Ending::Joined | Ending::Continued) | None => false,
    }
}

/// Returns `true` if both receipts are for one notice and one instance.
pub(crate) fn are_of_one_drain(one: &Receipt, other: &Receipt) -> bool {
    one.instance == other.instance && one.notice.event_id == other.notice.event_id
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use crate::event;

    /// Receipts from the tests of the drain function.
    const WRITTEN: [(&str, &str); 3] = [
        (
            "Spillway Receipt",
            include_str!(
                "../../../crates/drainer/src/publish/snapshots/spillway_drainer__publish__tests__the_receipt_of_a_drain_as_the_log_has_it.snap"
            ),
        ),
        (
            "Spillway Receipt",
            include_str!(
                "../../../crates/drainer/src/publish/snapshots/spillway_drainer__publish__tests__the_receipt_of_a_drain_that_is_continued.snap"
            ),
        ),
        (
            "Spillway Drain Begun",
            include_str!(
                "../../../crates/drainer/src/publish/snapshots/spillway_drainer__publish__tests__the_event_of_a_drain_that_has_begun.snap"
            ),
        ),
    ];

    #[test]
    fn receipts_of_the_drain_function_are_read_without_loss() {
        for (detail_type, snapshot) in WRITTEN {
            let (_, written) = snapshot.split_once("\n---\n").expect("the snapshot has a head");
            let written: Value = serde_json::from_str(written).expect("JSON");
            let body = serde_json::json!({"id": "b-1", "detail-type": detail_type, "source": "spillway",
                "account": "123456789012", "detail": written});
            let event = event::read(&body.to_string(), "123456789012").expect("an event of ours");
            let mut read = serde_json::to_value(&event.receipt).expect("plain data");
            for around in ["timestamp", "level", "message"] {
                read[around] = written[around].clone();
            }
            if !event.node_labels.is_empty() {
                read["node_labels"] = serde_json::json!(event.node_labels);
            }
            assert_eq!(read, written);
        }
    }
}
