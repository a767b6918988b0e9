//! Parses the drain function's events, which arrive in an SQS queue.

use std::borrow::Cow;
use std::collections::BTreeMap;

use aws_lambda_events::eventbridge::EventBridgeEvent;
use serde::{Deserialize as _, Serialize};
use serde_json::Value;
use spillway_receipt::{DRAIN_BEGUN, DRAIN_BLOCKED, DRAIN_UNBLOCKED, Document, RECEIPT, Receipt};

/// Phase of the drain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum Phase {
    /// The drain has begun: the API server has responded to the first evictions.
    Begun,
    /// The eviction of a pod is blocked, for example by a `PodDisruptionBudget`.
    Blocked,
    /// All pods whose eviction was blocked are leaving or have gone.
    Unblocked,
    /// The drain has ended: the receipt is complete.
    Ended,
}

#[derive(Debug, Clone)]
pub(crate) struct Event {
    /// Id of the event, which is the same in each delivery.
    pub(crate) id: String,
    pub(crate) phase: Phase,
    pub(crate) receipt: Receipt,
    /// Labels that the node had when Spillway claimed the node for a drain.
    pub(crate) node_labels: BTreeMap<String, String>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum EventError {
    #[error("the body is not an EventBridge event: {0}")]
    Unreadable(serde_json::Error),
    #[error("the event has no id")]
    NoId,
    #[error("\"{0}\" is not an event of Spillway")]
    Foreign(String),
    #[error("the event is of source {from}, not of Spillway in this account")]
    NotOfSpillway { from: String },
    #[error("cannot read the receipt: {0}")]
    Receipt(serde_json::Error),
}

/// Parses the body of an SQS message. Refuses events of another source or account.
pub(crate) fn read(body: &str, account: &str) -> Result<Event, EventError> {
    let event: EventBridgeEvent<Value> = serde_json::from_str(body).map_err(EventError::Unreadable)?;
    let phase = match event.detail_type.as_str() {
        DRAIN_BEGUN => Phase::Begun,
        DRAIN_BLOCKED => Phase::Blocked,
        DRAIN_UNBLOCKED => Phase::Unblocked,
        RECEIPT => Phase::Ended,
        _ => return Err(EventError::Foreign(event.detail_type)),
    };
    let sender = event.account.unwrap_or_default();
    if event.source != "spillway" || sender != account {
        return Err(EventError::NotOfSpillway { from: format!("{:?} in account {sender:?}", event.source) });
    }
    let document = Document::deserialize(&event.detail).map_err(EventError::Receipt)?;
    Ok(Event {
        id: event.id.ok_or(EventError::NoId)?,
        phase,
        receipt: document.receipt.into_owned(),
        node_labels: document.node_labels.map(Cow::into_owned).unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const HOME: &str = "123456789012";

    fn body(detail_type: &str, detail: &Value) -> String {
        json!({
            "version": "0", "id": "b-1", "detail-type": detail_type, "source": "spillway", "account": "123456789012",
            "time": "2026-11-21T03:12:09Z", "region": "eu-west-1", "resources": [], "detail": detail,
        })
        .to_string()
    }

    #[test]
    fn each_detail_type_has_its_phase() {
        for (detail_type, phase) in [
            ("Spillway Drain Begun", Phase::Begun),
            ("Spillway Drain Blocked", Phase::Blocked),
            ("Spillway Drain Unblocked", Phase::Unblocked),
            ("Spillway Receipt", Phase::Ended),
        ] {
            let event =
                read(&body(detail_type, &json!({"receipt": 2, "node": "n-1"})), HOME).expect("an event of ours");
            assert_eq!((event.id.as_str(), event.phase), ("b-1", phase));
            assert_eq!(event.receipt.node.as_deref(), Some("n-1"));
        }
    }

    #[test]
    fn foreign_account_or_source_is_refused() {
        let genuine = body("Spillway Receipt", &json!({"receipt": 2}));
        assert!(read(&genuine, HOME).is_ok());
        for (ours, theirs) in [(HOME, "999999999999"), ("\"spillway\"", "\"my.tool\""), ("\"account\"", "\"accounts\"")]
        {
            let forged = genuine.replace(ours, theirs);
            let refused = read(&forged, HOME).map(|event| event.id).expect_err("forged").to_string();
            assert!(refused.ends_with(", not of Spillway in this account"), "{refused}");
        }
        let error = |body: &str| read(body, HOME).map(|event| event.id).expect_err("a foreign message").to_string();
        assert_eq!(error("hello"), "the body is not an EventBridge event: expected value at line 1 column 1");
        let spot = error(&body("EC2 Spot Instance Interruption Warning", &json!({})));
        assert_eq!(spot, "\"EC2 Spot Instance Interruption Warning\" is not an event of Spillway");
        assert!(error(&body("Spillway Receipt", &json!({"pods": 7}))).starts_with("cannot read the receipt: "));
    }
}
