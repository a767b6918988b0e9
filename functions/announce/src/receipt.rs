//! Predicates on receipts that messages need.

use spillway_receipt::{Ending, Fate, Receipt};

/// Returns `true` if the notice has a final result. An ignored notice has a final result only if its hook ended early and pods
/// were lost.
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
    use std::collections::BTreeSet;

    use serde_json::{Value, json};

    use crate::samples::document_of_beginning;
    use crate::{event, test_support};

    const BEGUN: &str = "the_event_of_a_drain_that_has_begun";

    #[test]
    fn receipts_of_the_drain_function_are_read_without_loss() {
        for (detail_type, test) in [
            ("Spillway Receipt", "the_receipt_of_a_drain_as_the_log_has_it"),
            ("Spillway Receipt", "the_receipt_of_a_drain_that_is_continued"),
            ("Spillway Drain Begun", BEGUN),
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

    #[test]
    fn begun_sample_has_the_fields_of_the_drain_functions_event() {
        let (sample, written) = (document_of_beginning(1), test_support::written(BEGUN));
        let fields = |event: &Value| -> BTreeSet<String> {
            let pods = event["pods"].as_array().expect("pods to evict");
            pods.iter().filter_map(Value::as_object).flat_map(|pod| pod.keys().cloned()).collect()
        };
        assert_eq!(fields(&sample), fields(&written));
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let reason = |event: &Value| {
            let reason = text(&event["reason"]).replace(&text(&event["node"]), "NODE");
            reason.replace(&text(&event["notice"]["kind"]), "KIND")
        };
        assert_eq!(reason(&sample), reason(&written));
    }
}
