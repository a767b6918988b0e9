//! The receipt of one notice for one instance, and what the log and the event bus have around it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::lenient::{known, known_ones};
use crate::{AfterDrain, Earlier, Fate, HookRecord, Pod, PodRecord, Step, StepName, WindowRecord};

/// The record of one notice for one instance.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Receipt {
    #[serde(rename = "receipt")]
    pub version: u32,
    /// Version of the function that wrote the receipt.
    #[serde(rename = "version", skip_serializing_if = "str::is_empty")]
    pub release: Cow<'static, str>,
    /// Lambda's id of the invocation.
    pub request_id: String,
    /// Where the function is at home.
    pub account: String,
    pub region: String,
    /// The stack that the function is of.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub stack: String,
    pub notice: NoticeRecord,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// The instance's availability zone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance_type: Option<String>,
    /// The group that it is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_scaling_group: Option<String>,
    /// What manages the node's life.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub managed_by: Option<Cow<'static, str>>,
    /// What was to be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<Cow<'static, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Why it could not be cordoned, if its pods were evicted all the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_cordoned: Option<String>,
    /// Tags that had no effect.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// How long there was for the drain.
    #[serde(deserialize_with = "known", skip_serializing_if = "Option::is_none")]
    pub window: Option<WindowRecord>,
    /// Milliseconds from the notice to each step.
    #[serde(deserialize_with = "known_ones")]
    pub steps: Vec<Step>,
    /// What was waited for when the last pod had gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_drain: Option<AfterDrain>,
    #[serde(deserialize_with = "known", skip_serializing_if = "Option::is_none")]
    pub hook: Option<HookRecord>,
    #[serde(deserialize_with = "known", skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
    /// Stable type of the error, if the notice failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Cow<'static, str>>,
    /// The ending in a sentence.
    pub reason: String,
    /// Whether nothing was touched, whatever was found.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// The invocations that worked on the notice before this one.
    #[serde(deserialize_with = "known_ones", skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<Earlier>,
    /// How many pods are not in the list that follows, because the receipt would have been too long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pods_cut: Option<usize>,
    /// Last, because CloudWatch Logs Insights reads the first 200 fields of a line.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pods: Vec<Pod>,
}

/// The notice, as far as it could be read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Notice"))]
pub struct NoticeRecord {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<Cow<'static, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Timestamp>,
    /// When the instance goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
}

/// How a notice ended. There is no other way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Ending {
    /// Every pod that had to leave has gone.
    Drained,
    /// Another notice holds the claim, and the node is empty all the same; or Karpenter was taking it away already.
    Joined,
    /// Nothing was to be done, for the reason stated.
    Ignored,
    /// A later invocation goes on with it.
    Continued,
    /// What was asked for, which is no drain, has been done.
    Done,
    /// It did not work; the event is kept.
    Failed,
}

/// The receipt as a line of the log, and as the detail of an event; without an ending it tells of a drain that has begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(description = "The record of one notice for one instance.")
)]
pub struct Document<'a> {
    #[serde(default)]
    pub timestamp: Timestamp,
    //  Lambda filters lines by it.
    #[serde(default)]
    pub level: Cow<'static, str>,
    #[serde(default)]
    pub message: String,
    /// In how many lines of the log it stands, if in several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receipt_parts: Option<usize>,
    #[serde(flatten)]
    pub receipt: Cow<'a, Receipt>,
    /// The node's labels when it was claimed; on the event bus only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_labels: Option<Cow<'a, BTreeMap<String, String>>>,
}

impl<'a> Document<'a> {
    /// The document that is written now, with the timestamp and the level that Lambda needs to filter lines by level.
    #[must_use]
    pub fn of(receipt: &'a Receipt, now: Timestamp, node_labels: Option<&'a BTreeMap<String, String>>) -> Self {
        let ending = receipt.ending.map_or("begun", Ending::as_str);
        let level = if receipt.ending == Some(Ending::Failed) { "ERROR" } else { "INFO" };
        Self {
            timestamp: now,
            level: level.into(),
            message: format!("{ending}: {}", receipt.reason),
            receipt_parts: None,
            receipt: Cow::Borrowed(receipt),
            node_labels: node_labels.map(Cow::Borrowed),
        }
    }

    /// The document as JSON.
    #[must_use]
    pub fn json(&self) -> String {
        serde_json::to_string(self).expect("a receipt is plain data with string keys")
    }
}

impl Receipt {
    /// The pods with what became of them.
    pub fn records(&self) -> impl Iterator<Item = &PodRecord> {
        self.pods.iter().filter_map(Pod::record)
    }

    /// The same, to be changed.
    pub fn records_mut(&mut self) -> impl Iterator<Item = &mut PodRecord> {
        self.pods.iter_mut().filter_map(|pod| match pod {
            Pod::AtTheEnd(record) => Some(record),
            Pod::AtTheBegin(_) => None,
        })
    }

    /// How many pods came to such an end.
    #[must_use]
    pub fn count(&self, fate: Fate) -> usize {
        self.records().filter(|pod| pod.fate == fate).count()
    }

    /// When a step was done, in milliseconds from the notice.
    #[must_use]
    pub fn step_ms(&self, step: StepName) -> Option<i64> {
        self.steps.iter().find(|done| done.step == step).map(|done| done.at_ms)
    }
}

impl NoticeRecord {
    /// Milliseconds from the notice to `at`.
    #[must_use]
    pub fn ms_until(&self, at: Timestamp) -> i64 {
        let since = self.time.map_or(SignedDuration::ZERO, |time| at.duration_since(time));
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }
}

impl Ending {
    /// As it stands in the receipt.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Drained => "drained",
            Self::Joined => "joined",
            Self::Ignored => "ignored",
            Self::Continued => "continued",
            Self::Done => "done",
            Self::Failed => "failed",
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(written: Value) -> Receipt {
        serde_json::from_value::<Document<'_>>(written).expect("a receipt").receipt.into_owned()
    }

    #[test]
    fn what_a_newer_version_writes_does_no_harm() {
        let receipt = read(json!({
            "receipt": 3, "news": {"a": 1}, "ending": "postponed", "node": "n-1", "managed_by": "a moon",
            "notice": {"kind": "a new kind", "event_id": "e-1"}, "window": {"until": "noon"},
            "steps": [{"step": "begun", "at_ms": 3}, {"step": "prayed", "at_ms": 9}],
            "hook": {"group": "g", "name": "h", "state": "forgotten"},
            "pods": [{"pod": "shop/db-0", "fate": "teleported", "to": "n-2"}],
        }));
        assert_eq!((receipt.ending, receipt.node.as_deref()), (None, Some("n-1")));
        assert_eq!(
            (receipt.managed_by.as_deref(), receipt.notice.kind.as_deref()),
            (Some("a moon"), Some("a new kind"))
        );
        assert_eq!((receipt.window, receipt.hook.as_ref(), receipt.steps.len()), (None, None, 1));
        assert_eq!((receipt.pods[0].name(), receipt.pods[0].fate()), ("shop/db-0", None), "no end that is counted");
    }

    #[test]
    fn an_ending_has_one_name() {
        use Ending::{Continued, Done, Drained, Failed, Ignored, Joined};
        for ending in [Drained, Joined, Ignored, Continued, Done, Failed] {
            assert_eq!(json!(ending), ending.as_str());
        }
    }

    #[test]
    fn the_document_says_the_ending_with_its_reason_and_only_a_failure_is_an_error() {
        let written = |ending| {
            let receipt = Receipt { ending, reason: "so it is".to_owned(), ..Receipt::default() };
            let text = Document::of(&receipt, Timestamp::UNIX_EPOCH, None).json();
            let json: Value = serde_json::from_str(&text).expect("JSON");
            (json["level"].clone(), json["message"].clone())
        };
        assert_eq!(written(Some(Ending::Failed)), (json!("ERROR"), json!("failed: so it is")));
        assert_eq!(written(Some(Ending::Drained)), (json!("INFO"), json!("drained: so it is")));
        assert_eq!(written(None), (json!("INFO"), json!("begun: so it is")));
    }

    #[test]
    fn a_pod_without_an_end_is_in_no_count() {
        let ended = |pod: &str, fate| Pod::AtTheEnd(PodRecord::sample(pod, fate, 0));
        let begun = Pod::AtTheBegin(crate::Leaving { pod: "d".to_owned() });
        let pods = vec![ended("a", Fate::Clean), ended("b", Fate::Lost), ended("c", Fate::Clean), begun];
        let mut receipt = Receipt { pods, ..Receipt::default() };
        assert_eq!([Fate::Clean, Fate::Lost, Fate::Forced].map(|fate| receipt.count(fate)), [2, 1, 0]);
        receipt.records_mut().for_each(|record| record.fate = Fate::Forced);
        assert_eq!(receipt.records().map(|record| record.pod.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!(receipt.count(Fate::Forced), 3);
    }

    #[test]
    fn a_step_is_found_by_its_name() {
        let steps = vec![Step { step: StepName::Begun, at_ms: 7 }, Step { step: StepName::Claimed, at_ms: 90 }];
        let receipt = Receipt { steps, ..Receipt::default() };
        assert_eq!((receipt.step_ms(StepName::Claimed), receipt.step_ms(StepName::Drained)), (Some(90), None));
    }

    #[test]
    fn time_is_counted_from_the_notice_if_it_has_one() {
        let at = |text: &str| text.parse::<Timestamp>().expect("a time");
        let notice = NoticeRecord { time: Some(at("2026-11-21T03:12:00Z")), ..NoticeRecord::default() };
        assert_eq!(notice.ms_until(at("2026-11-21T03:12:01.5Z")), 1_500);
        assert_eq!(NoticeRecord::default().ms_until(at("2026-11-21T03:12:01.5Z")), 0);
    }
}
