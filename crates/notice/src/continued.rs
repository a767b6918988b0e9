//! The continuation: what an invocation whose time is up tells the later one that goes on with the drain. It has the notice
//! whole, so that nothing need be kept in between.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
pub use spillway_receipt::Earlier;
use spillway_receipt::PodRecord;

pub const KEY: &str = "spillway-continuation";

const LIST: &str = "affectedEntities";

/// A notice as AWS sent it, and how far earlier invocations came with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    pub notice: Value,
    /// Which of its instances this is about, if it does not concern just one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// The invocations before this one, the first of them first.
    pub earlier: Vec<Earlier>,
    /// The pods that were left by the last invocation that listed any. They may leave before the next one lists them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remaining: Vec<PodRecord>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blockage: Option<PublishedBlockage>,
    /// Whether the Auto Scaling group keeps the instance if its hook is abandoned, as the last answer said.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_kept: bool,
    /// Whether the schedule that brings it has the second of the two names that it may have.
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

    /// When the first invocation began, if this is a later one.
    #[must_use]
    pub fn began(&self) -> Option<Timestamp> {
        self.earlier.first().map(|first| first.from)
    }

    /// Start of the first invocation that got at the node: it claimed the node within seconds.
    #[must_use]
    pub fn claimed(&self) -> Option<Timestamp> {
        self.earlier.iter().find(|earlier| earlier.node.is_some()).map(|earlier| earlier.from)
    }

    /// The invocation that handed its claim on to this one: those since then did not get at the node.
    #[must_use]
    pub fn continued_from(&self) -> Option<&str> {
        let last = self.earlier.iter().rfind(|earlier| earlier.node.is_some());
        last.map(|last| last.request_id.as_str())
    }

    /// The history with a notice that has lost its list: of ten thousand entries each gets a copy.
    pub(super) fn without_list(mut self) -> Self {
        if let Some(detail) = self.notice.get_mut("detail").and_then(Value::as_object_mut) {
            detail.remove(LIST);
        }
        self
    }

    /// The history for one instance of several, whose own invocation begins.
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

    /// The history that the next invocation gets. Of an invocation that did not get at the pods nothing new is known.
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

    use super::super::tests::{home, sample};
    use super::super::{Incoming, read};
    use super::{History, KEY, PublishedBlockage};

    #[test]
    fn a_continuation_means_what_its_notice_meant_and_knows_what_was_done() {
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
    fn what_has_been_published_of_a_blockage_is_known_to_all_later_invocations() {
        let Incoming::Notice { history, .. } = read(sample("drain-continuation"), &home()).unwrap() else {
            panic!("not read")
        };
        assert_eq!(history.blockage, None);
        let invocation = history.earlier[0].clone();
        let blocked = history.with(invocation.clone(), Some(PublishedBlockage::Begun));
        let continued: History = serde_json::from_value(serde_json::to_value(&blocked).unwrap()).unwrap();
        assert_eq!(continued.blockage, Some(PublishedBlockage::Begun));
        let blind = continued.with(invocation.clone(), None);
        assert_eq!(blind.blockage, Some(PublishedBlockage::Begun), "it did not get at the pods");
        let over = blind.with(invocation, Some(PublishedBlockage::Over));
        assert_eq!(over.blockage, Some(PublishedBlockage::Over));
    }

    #[test]
    fn a_continuation_of_a_continuation_is_none_of_ours() {
        let mut event = sample("drain-continuation");
        event[KEY]["notice"] = sample("drain-continuation");
        let refused = read(event, &home()).unwrap_err().to_string();
        assert!(refused.starts_with("cannot read the notice: at spillway-continuation.notice"), "{refused}");
    }

    #[test]
    fn a_continuation_without_its_notice_cannot_be_read() {
        let mut event = sample("drain-continuation");
        event[KEY] = json!({"earlier": []});
        assert_eq!(
            read(event, &home()).unwrap_err().to_string(),
            "cannot read the notice: at spillway-continuation: missing field `notice`"
        );
    }
}
