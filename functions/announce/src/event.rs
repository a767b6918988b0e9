//! What the queue brings: the drain function's messages, in the form of EventBridge's events, each with a receipt.

use std::borrow::Cow;
use std::collections::BTreeMap;

use aws_lambda_events::eventbridge::EventBridgeEvent;
use serde::{Deserialize as _, Serialize};
use serde_json::Value;
use spillway_receipt::{DRAIN_BEGUN, DRAIN_BLOCKED, DRAIN_UNBLOCKED, Document, RECEIPT, Receipt};

/// When in the course of a drain an event tells of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum Phase {
    /// The first evictions have been answered.
    Begun,
    /// Something has blocked pods for long.
    Blocked,
    /// Nothing blocks them any more.
    Unblocked,
    /// The receipt is closed.
    Ended,
}

/// One event of the drain function.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    /// The same in every delivery.
    pub(crate) id: String,
    pub(crate) phase: Phase,
    pub(crate) receipt: Receipt,
    /// The node's labels when it was claimed.
    pub(crate) node_labels: BTreeMap<String, String>,
}

/// A message of the queue that is no such event.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EventError {
    #[error("it is no event of EventBridge: {0}")]
    Unreadable(serde_json::Error),
    #[error("it has no id")]
    NoId,
    #[error("it is \"{0}\", which is no event of ours")]
    Foreign(String),
    #[error("it is of source {from}, and not of Spillway in this account")]
    NotOfSpillway { from: String },
    #[error("its receipt cannot be read: {0}")]
    Receipt(serde_json::Error),
}

/// Reads the body of a message. Who may put messages into the queue is IAM's to say; an event that a rule of somebody's leads there
/// has another source or account.
pub(crate) fn read(body: &str, account: &str) -> Result<Event, EventError> {
    let event: EventBridgeEvent<Value> = serde_json::from_str(body).map_err(EventError::Unreadable)?;
    let phase = match event.detail_type.as_str() {
        DRAIN_BEGUN => Phase::Begun,
        DRAIN_BLOCKED => Phase::Blocked,
        DRAIN_UNBLOCKED => Phase::Unblocked,
        RECEIPT => Phase::Ended,
        _ => return Err(EventError::Foreign(event.detail_type)),
    };
    let of = event.account.unwrap_or_default();
    if event.source != "spillway" || of != account {
        return Err(EventError::NotOfSpillway { from: format!("{:?} in account {of:?}", event.source) });
    }
    let read = Document::deserialize(&event.detail).map_err(EventError::Receipt)?;
    Ok(Event {
        id: event.id.ok_or(EventError::NoId)?,
        phase,
        receipt: read.receipt.into_owned(),
        node_labels: read.node_labels.map(Cow::into_owned).unwrap_or_default(),
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
    fn each_event_is_read() {
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
    fn a_receipt_of_another_account_or_another_source_is_not_believed() {
        let genuine = body("Spillway Receipt", &json!({"receipt": 2}));
        assert!(read(&genuine, HOME).is_ok());
        for (ours, theirs) in [(HOME, "999999999999"), ("\"spillway\"", "\"my.tool\""), ("\"account\"", "\"accounts\"")]
        {
            let forged = genuine.replace(ours, theirs);
            let refused = read(&forged, HOME).map(|event| event.id).expect_err("forged").to_string();
            assert!(refused.ends_with("and not of Spillway in this account"), "{refused}");
        }
    }

    #[test]
    fn what_is_no_event_of_ours_says_what_it_is() {
        let why = |body: &str| read(body, HOME).map(|event| event.id).expect_err("no event of ours").to_string();
        assert_eq!(why("hello"), "it is no event of EventBridge: expected value at line 1 column 1");
        assert_eq!(
            why(&body("EC2 Spot Instance Interruption Warning", &json!({}))),
            "it is \"EC2 Spot Instance Interruption Warning\", which is no event of ours"
        );
        assert!(why(&body("Spillway Receipt", &json!({"pods": 7}))).starts_with("its receipt cannot be read: "));
    }
}
