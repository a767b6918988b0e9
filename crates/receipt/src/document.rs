//! Receipt of one notice for one instance, as a log line and as an event.

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
    /// Lambda's request id.
    pub request_id: String,
    /// Account of the function.
    pub account: String,
    pub region: String,
    /// CloudFormation stack of the function.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub stack: String,
    pub notice: NoticeRecord,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// Availability zone of the instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance_type: Option<String>,
    /// Auto Scaling group of the instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_scaling_group: Option<String>,
    /// Manager of the node, such as Karpenter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub managed_by: Option<Cow<'static, str>>,
    /// Action that the settings select for the notice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<Cow<'static, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Reason why the node could not be cordoned, if its pods were evicted anyway.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_cordoned: Option<String>,
    /// Warnings, for example about a tag that had no effect.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Time available for the drain.
    #[serde(deserialize_with = "known", skip_serializing_if = "Option::is_none")]
    pub window: Option<WindowRecord>,
    /// Steps of the drain with their times.
    #[serde(deserialize_with = "known_ones")]
    pub steps: Vec<Step>,
    /// Durations for which the drain waited after the last pod had gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_drain: Option<AfterDrain>,
    /// Time of the request to replace the instance, or the reason why there was no request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replacement: Option<String>,
    #[serde(deserialize_with = "known", skip_serializing_if = "Option::is_none")]
    pub hook: Option<HookRecord>,
    #[serde(deserialize_with = "known", skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
    /// Error type, if handling the notice failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Cow<'static, str>>,
    /// Sentence that describes the ending.
    pub reason: String,
    /// `true` in a dry run, which changes nothing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// Earlier invocations for the notice.
    #[serde(deserialize_with = "known_ones", skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<Earlier>,
    /// Number of pods that were removed from `pods` because the receipt was too long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pods_cut: Option<usize>,
    /// Pods of the node. Last field, because CloudWatch Logs Insights reads only the first 200 fields of a line.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pods: Vec<Pod>,
}

/// Fields that Spillway could read from the notice.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Notice"))]
pub struct NoticeRecord {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<Cow<'static, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Timestamp>,
    /// Time at which the instance goes down, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
}

/// Result of handling a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Ending {
    /// All pods that had to leave have gone or are `unconfirmed`.
    Drained,
    /// Another invocation or Karpenter already drains the node.
    Joined,
    /// Spillway skipped or stopped the action. The field `reason` has the cause.
    Ignored,
    /// Another invocation continues the work.
    Continued,
    /// An action other than a drain, such as a cordon, is done.
    Done,
    /// The action failed, or pods were lost.
    Failed,
}

/// Receipt as a log line, or as the `detail` of an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(description = "The record of one notice for one instance.")
)]
pub struct Document<'a> {
    #[serde(default)]
    pub timestamp: Timestamp,
    //  Lambda filters lines by level.
    #[serde(default)]
    pub level: Cow<'static, str>,
    #[serde(default)]
    pub message: String,
    /// Number of log lines of the receipt; absent if the receipt fits into one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receipt_parts: Option<usize>,
    #[serde(flatten)]
    pub receipt: Cow<'a, Receipt>,
    /// Labels that the node had when Spillway claimed it. Absent in the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_labels: Option<Cow<'a, BTreeMap<String, String>>>,
}

impl<'a> Document<'a> {
    /// Adds a timestamp, a log level and a message to a receipt.
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

    #[must_use]
    pub fn json(&self) -> String {
        serde_json::to_string(self).expect("a receipt is plain data with string keys")
    }
}

impl Receipt {
    /// Returns the full records of the pods. Pods of which only the name is known are skipped.
    pub fn records(&self) -> impl Iterator<Item = &PodRecord> {
        self.pods.iter().filter_map(Pod::record)
    }

    /// Mutable variant of [`Self::records`].
    pub fn records_mut(&mut self) -> impl Iterator<Item = &mut PodRecord> {
        self.pods.iter_mut().filter_map(|pod| match pod {
            Pod::Full(record) => Some(record),
            Pod::NameOnly(_) => None,
        })
    }

    /// Returns the number of pods with the fate.
    #[must_use]
    pub fn count(&self, fate: Fate) -> usize {
        self.records().filter(|pod| pod.fate == fate).count()
    }

    /// Returns the time of a step, in milliseconds from the notice.
    #[must_use]
    pub fn step_ms(&self, step: StepName) -> Option<i64> {
        self.steps.iter().find(|done| done.step == step).map(|done| done.at_ms)
    }
}

impl NoticeRecord {
    /// Returns the milliseconds from the notice to `at`.
    #[must_use]
    pub fn ms_until(&self, at: Timestamp) -> i64 {
        let since = self.time.map_or(SignedDuration::ZERO, |time| at.duration_since(time));
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }
}

impl Ending {
    /// Returns the name of the ending in the receipt.
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
    fn unknown_values_of_a_newer_version_are_absent() {
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
        assert_eq!((receipt.pods[0].name(), receipt.pods[0].fate()), ("shop/db-0", None));
    }

    #[test]
    fn json_spells_each_ending_like_as_str() {
        use Ending::{Continued, Done, Drained, Failed, Ignored, Joined};
        for ending in [Drained, Joined, Ignored, Continued, Done, Failed] {
            assert_eq!(json!(ending), ending.as_str());
        }
    }

    #[test]
    fn only_a_failed_receipt_has_level_error() {
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
    fn times_are_relative_to_the_notice() {
        let steps = vec![Step { step: StepName::Begun, at_ms: 7 }, Step { step: StepName::Claimed, at_ms: 90 }];
        let receipt = Receipt { steps, ..Receipt::default() };
        assert_eq!((receipt.step_ms(StepName::Claimed), receipt.step_ms(StepName::Drained)), (Some(90), None));
        let at = |text: &str| text.parse::<Timestamp>().expect("a time");
        let notice = NoticeRecord { time: Some(at("2026-11-21T03:12:00Z")), ..NoticeRecord::default() };
        assert_eq!(notice.ms_until(at("2026-11-21T03:12:01.5Z")), 1_500);
        assert_eq!(NoticeRecord::default().ms_until(at("2026-11-21T03:12:01.5Z")), 0);
    }
}
