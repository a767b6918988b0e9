//! Payload with which the function invokes itself again for the same notice. The payload contains the whole notice.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
pub use spillway_receipt::Earlier;
use spillway_receipt::PodRecord;

pub const KEY: &str = "spillway-continuation";

const LIST: &str = "affectedEntities";

/// Notice in AWS' form, and data about earlier invocations for the notice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    pub notice: Value,
    /// Instance that this invocation handles, if the notice is about several instances.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// Earlier invocations, oldest first.
    pub earlier: Vec<Earlier>,
    /// Pods that have to leave the node and that earlier invocations did not remove.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remaining: Vec<PodRecord>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blockage: Option<PublishedBlockage>,
    /// `true` if the Auto Scaling group retains an instance whose terminate hook is abandoned.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_kept: bool,
    /// Schedules of a postponed drain have two names in turn. `true` if the latest schedule has the second name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_second_schedule: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PublishedBlockage {
    Begun,
    Over,
}

impl History {
    #[must_use]
    pub fn of(notice: Value) -> Self {
        Self {
            notice,
            instance: None,
            earlier: Vec::new(),
            remaining: Vec::new(),
            blockage: None,
            is_kept: false,
            by_second_schedule: false,
        }
    }

    /// Returns the start time of the first invocation, or `None` if there was no earlier invocation.
    #[must_use]
    pub fn began(&self) -> Option<Timestamp> {
        self.earlier.first().map(|first| first.from)
    }

    /// Returns the start time of the earlier invocation that claimed the node. This time approximates the time of the claim.
    #[must_use]
    pub fn claimed(&self) -> Option<Timestamp> {
        self.earlier.iter().find(|earlier| earlier.node.is_some()).map(|earlier| earlier.from)
    }

    /// Returns the request id of the last invocation that held the claim on the node.
    #[must_use]
    pub fn continued_from(&self) -> Option<&str> {
        let last = self.earlier.iter().rfind(|earlier| earlier.node.is_some());
        last.map(|last| last.request_id.as_str())
    }

    /// Removes `affectedEntities`, the list of instances.
    pub(super) fn without_entities(mut self) -> Self {
        if let Some(detail) = self.notice.get_mut("detail").and_then(Value::as_object_mut) {
            detail.remove(LIST);
        }
        self
    }

    #[must_use]
    pub fn for_instance(&self, instance: &str) -> Self {
        Self { instance: Some(instance.to_owned()), ..self.clone() }
    }

    #[must_use]
    pub fn for_entry(&self, instance: &str, entry: &Value) -> Self {
        let mut history = self.for_instance(instance);
        history.notice["detail"][LIST] = Value::Array(vec![entry.clone()]);
        history
    }

    /// Returns the history for the next invocation. If `blockage` is `None`, keeps `self.blockage`.
    #[must_use]
    pub fn with(&self, invocation: Earlier, blockage: Option<PublishedBlockage>) -> Self {
        let mut history = self.clone();
        history.earlier.push(invocation);
        history.blockage = blockage.or(history.blockage);
        history
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::{continuation, home, sample};
    use super::super::{Incoming, read};
    use super::{KEY, PublishedBlockage};

    #[test]
    fn continuation_has_the_notice_and_the_earlier_invocations() {
        let first = read(sample("terminate-lifecycle-action"), &home()).unwrap();
        let later = read(sample("drain-continuation"), &home()).unwrap();
        let (Incoming::Notice { notice: first, history: at_first }, Incoming::Notice { notice, history }) =
            (first, later)
        else {
            panic!("not read")
        };
        assert_eq!(notice, first);
        assert_eq!((at_first.began(), at_first.continued_from()), (None, None));
        assert_eq!(history.notice, at_first.notice);
        assert_eq!(history.began(), Some("2026-11-21T03:12:01Z".parse().unwrap()));
        assert_eq!((at_first.claimed(), history.claimed()), (None, history.began()));
        assert_eq!(history.continued_from(), Some("0e5f1c9e-5a77-4f0b-9a53-0a4f4f2d7c22"));
        assert_eq!(history.earlier[0].pods, [("clean".to_owned(), 12), ("remaining".to_owned(), 2)].into());
    }

    #[test]
    fn published_blockage_is_known_to_later_invocations() {
        let Incoming::Notice { history, .. } = read(sample("drain-continuation"), &home()).unwrap() else {
            panic!("not read")
        };
        assert_eq!(history.blockage, None);
        let invocation = history.earlier[0].clone();
        let blocked = history.with(invocation.clone(), Some(PublishedBlockage::Begun));
        let Incoming::Notice { history: continued, .. } = read(continuation(&blocked), &home()).unwrap() else {
            panic!("not read")
        };
        assert_eq!(continued.blockage, Some(PublishedBlockage::Begun));
        let blind = continued.with(invocation.clone(), None);
        assert_eq!(blind.blockage, Some(PublishedBlockage::Begun), "without access to the pods");
        let over = blind.with(invocation, Some(PublishedBlockage::Over));
        assert_eq!(over.blockage, Some(PublishedBlockage::Over));
    }

    #[test]
    fn continuation_without_a_notice_is_refused() {
        let place = "cannot read the notice: at spillway-continuation";
        for (continuation, why) in [
            (json!({"earlier": []}), format!("{place}: missing field `notice`")),
            (json!({"notice": sample("drain-continuation"), "earlier": []}), format!("{place}.notice")),
        ] {
            let refused = read(json!({KEY: continuation}), &home()).unwrap_err().to_string();
            assert!(refused.starts_with(&why), "{refused}");
        }
    }
}
