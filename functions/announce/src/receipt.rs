//! The receipt, as far as messages tell of it. docs/receipt.md describes it whole.
//!
//! Read leniently: a drain function that is newer than this one may write more, and its news is better told without
//! that than not at all.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The record of one notice for one instance.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Receipt {
    pub(crate) request_id: String,
    pub(crate) notice: Notice,
    pub(crate) account: Option<String>,
    pub(crate) region: Option<String>,
    pub(crate) zone: Option<String>,
    pub(crate) instance: Option<String>,
    pub(crate) instance_type: Option<String>,
    pub(crate) auto_scaling_group: Option<String>,
    //  The alias is version 1's name: its events may wait in the queue while the stack is upgraded. With the version after 0.2
    //  nobody writes it any more; so with the alias below.
    #[serde(alias = "owner")]
    pub(crate) managed_by: Option<String>,
    pub(crate) decision: Option<String>,
    pub(crate) cluster: Option<String>,
    pub(crate) node: Option<String>,
    pub(crate) node_labels: BTreeMap<String, String>,
    pub(crate) ending: Option<Ending>,
    pub(crate) reason: String,
    pub(crate) dry_run: bool,
    pub(crate) earlier: Vec<Earlier>,
    pub(crate) pods: Vec<Pod>,
    /// How many pods are not among them, because the receipt would have been too long.
    pub(crate) pods_cut: usize,
}

/// The notice.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Notice {
    pub(crate) event_id: Option<String>,
    pub(crate) kind: Option<String>,
    pub(crate) time: Option<Timestamp>,
    /// When the instance goes.
    pub(crate) deadline: Option<Timestamp>,
}

/// How a notice ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum Ending {
    Drained,
    Joined,
    Ignored,
    Continued,
    Done,
    Failed,
    #[serde(other)]
    Unknown,
}

/// An invocation that worked on the notice before.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Earlier {
    /// How many pods came to which end in it.
    pods: BTreeMap<String, usize>,
}

/// What became of a pod.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Pod {
    /// namespace/name
    #[serde(rename = "pod")]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) fate: Option<Fate>,
    #[serde(default)]
    pub(crate) why: Option<String>,
}

/// A pod's end, as far as messages tell it apart, from the worst to the best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Fate {
    /// It was still there when the time was up.
    #[serde(alias = "left")]
    Lost,
    /// Nobody knows.
    Unconfirmed,
    /// Deleted past what blocked it, so that it could still shut down.
    Forced,
    /// With less than the grace it asked for.
    Clamped,
    /// With all of it.
    Clean,
    /// It was not to leave.
    #[serde(other)]
    Stayed,
}

impl Receipt {
    /// Whether something came of the notice, and nothing goes on with it. One that is ignored came to nothing, unless pods
    /// were left because its hook waited no longer.
    pub(crate) fn is_over(&self) -> bool {
        match self.ending {
            Some(Ending::Drained | Ending::Done | Ending::Failed) => true,
            Some(Ending::Ignored) => self.pods.iter().any(|pod| pod.fate == Some(Fate::Lost)),
            Some(Ending::Joined | Ending::Continued | Ending::Unknown) | None => false,
        }
    }

    /// How many pods came to that end in earlier invocations; what those left was the next one's.
    pub(crate) fn before(&self, fate: &str) -> usize {
        self.earlier.iter().filter_map(|earlier| earlier.pods.get(fate)).sum()
    }

    /// Whether both are of one notice for one instance.
    pub(crate) fn is_of_the_drain_of(&self, other: &Self) -> bool {
        self.instance == other.instance && self.notice.event_id == other.notice.event_id
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_receipt_of_version_1_that_waited_in_the_queue_loses_no_pod() {
        let read = |version: u32, fate: &str, whose: &str| {
            let written = json!({"receipt": version, whose: "karpenter", "ending": "failed", "pods": [{"pod": "shop/db-0", "fate": fate}]});
            let receipt = Receipt::deserialize(written).expect("a receipt");
            (receipt.managed_by.clone(), receipt.pods[0].fate)
        };
        assert_eq!(read(1, "left", "owner"), (Some("karpenter".to_owned()), Some(Fate::Lost)));
        assert_eq!(read(1, "left", "owner"), read(2, "lost", "managed_by"));
    }

    #[test]
    fn what_a_later_version_adds_is_passed_over() {
        let written = json!({
            "receipt": 3, "news": {"a": 1}, "ending": "postponed", "node": "n-1",
            "pods": [{"pod": "shop/db-0", "fate": "teleported", "to": "n-2"}],
        });
        let receipt = Receipt::deserialize(written).expect("a receipt");
        assert_eq!((receipt.ending, receipt.node.as_deref()), (Some(Ending::Unknown), Some("n-1")));
        assert_eq!(receipt.pods[0].fate, Some(Fate::Stayed), "no end that is counted");
        assert!(!receipt.is_over());
    }

    #[test]
    fn every_field_that_is_read_is_one_of_the_documented_ones() {
        let schema = include_str!("../../../docs/receipt.schema.json");
        let schema: serde_json::Value = serde_json::from_str(schema).expect("a JSON schema");
        for field in [
            "request_id",
            "notice",
            "account",
            "region",
            "zone",
            "instance",
            "instance_type",
            "auto_scaling_group",
            "managed_by",
            "decision",
            "cluster",
            "node",
            "node_labels",
            "ending",
            "reason",
            "dry_run",
            "earlier",
            "pods",
            "pods_cut",
        ] {
            assert!(schema["properties"].get(field).is_some(), "{field} is not in docs/receipt.schema.json");
        }
    }

    #[test]
    fn what_a_newer_function_writes_does_no_harm() {
        let newer = r#"{"receipt": 2, "new": {}, "ending": "paused", "pods": [{"pod": "a/b", "fate": "vanished"}]}"#;
        let receipt: Receipt = serde_json::from_str(newer).expect("a receipt");
        assert_eq!(receipt.ending, Some(Ending::Unknown));
        assert_eq!(receipt.pods[0].fate, Some(Fate::Stayed));
    }
}
