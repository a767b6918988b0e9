//! A pod in the receipt.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Key in [`PodRecord::answers`]: a `PodDisruptionBudget` blocked the eviction.
pub const BLOCKED_BY_BUDGET: &str = "blocked-by-budget";
/// Key in [`PodRecord::answers`]: the eviction was refused because several `PodDisruptionBudgets` cover the pod.
pub const BLOCKED_BY_SEVERAL_BUDGETS: &str = "blocked-by-several-budgets";

/// Pod in a receipt. Events during a drain may contain only the pod's name.
// A pod with an unknown fate is read as `NameOnly`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Pod {
    Full(PodRecord),
    NameOnly(Leaving),
}

/// Record of one pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PodRecord {
    pub pod: String,
    #[serde(default)]
    pub uid: String,
    pub fate: Fate,
    /// Grace period that the pod specifies, in seconds.
    #[serde(default)]
    pub grace_s: u64,
    /// Shortened grace period that the pod was given, in seconds. Absent if not shortened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub given_s: Option<u64>,
    /// Number of eviction requests. In a dry run, the requests have no effect.
    #[serde(default)]
    pub evictions: u32,
    /// Number of each kind of response to the eviction and deletion requests.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub answers: BTreeMap<Cow<'static, str>, u32>,
    /// Name of the `PodDisruptionBudget` that last blocked the eviction, or several names with commas between them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked_by: Option<String>,
    /// Explanation of the fate, such as the reason why the pod was lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Time of the first eviction or deletion request, in milliseconds from the notice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requested_ms: Option<i64>,
    /// Time at which an eviction or deletion was accepted, in milliseconds from the notice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accepted_ms: Option<i64>,
    /// Time at which the pod was gone, in milliseconds from the notice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gone_ms: Option<i64>,
}

/// Name of a pod whose fate is unknown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Leaving {
    pub pod: String,
}

/// Fate of a pod in a drain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Fate {
    /// The pod shut down with its full grace period.
    Clean,
    /// The pod shut down with a shortened grace period.
    Clamped,
    /// The eviction was blocked, so the pod was deleted. The pod then shut down.
    Forced,
    /// The drain left the pod on the node, for example because a `DaemonSet` owns the pod.
    Stayed,
    /// The pod tolerates the cordon and was scheduled after the cordon. The drain did not wait for the pod.
    Returned,
    /// The pod is still on the node, but is not lost. For example, a later invocation continues the drain.
    Remaining,
    /// The pod was still on the node when the time for the drain was up.
    Lost,
    /// The pod was shutting down when the node stopped responding, or is stuck in Terminating.
    Unconfirmed,
    /// In a dry run: the API server would accept the eviction.
    WouldLeave,
    /// In a dry run: the eviction would be blocked.
    WouldBeBlocked,
}

impl Fate {
    pub const ALL: [Self; 10] = [
        Self::Clean,
        Self::Clamped,
        Self::Forced,
        Self::Stayed,
        Self::Returned,
        Self::Remaining,
        Self::Lost,
        Self::Unconfirmed,
        Self::WouldLeave,
        Self::WouldBeBlocked,
    ];

    /// Returns the name of the fate in the receipt.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Clamped => "clamped",
            Self::Forced => "forced",
            Self::Stayed => "stayed",
            Self::Returned => "returned",
            Self::Remaining => "remaining",
            Self::Lost => "lost",
            Self::Unconfirmed => "unconfirmed",
            Self::WouldLeave => "would-leave",
            Self::WouldBeBlocked => "would-be-blocked",
        }
    }
}

impl Pod {
    /// Returns `namespace/name` of the pod.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Full(PodRecord { pod, .. }) | Self::NameOnly(Leaving { pod }) => pod,
        }
    }

    /// Returns the record of the pod. `None` if only the name is known.
    #[must_use]
    pub fn record(&self) -> Option<&PodRecord> {
        match self {
            Self::Full(record) => Some(record),
            Self::NameOnly(_) => None,
        }
    }

    /// Returns the fate of the pod, if known.
    #[must_use]
    pub fn fate(&self) -> Option<Fate> {
        self.record().map(|record| record.fate)
    }

    /// Returns the explanation of the fate, if recorded.
    #[must_use]
    pub fn why(&self) -> Option<&str> {
        self.record()?.why.as_deref()
    }
}

impl PodRecord {
    /// Creates a record of a pod to which no request was sent.
    #[must_use]
    pub fn of(pod: String, uid: String, fate: Fate, grace: Duration) -> Self {
        Self {
            pod,
            uid,
            fate,
            grace_s: grace.as_secs(),
            given_s: None,
            evictions: 0,
            answers: BTreeMap::new(),
            blocked_by: None,
            why: None,
            requested_ms: None,
            accepted_ms: None,
            gone_ms: None,
        }
    }

    /// Returns the explanation of the fate, or a placeholder if no explanation is recorded.
    #[must_use]
    pub fn why(&self) -> &str {
        self.why.as_deref().unwrap_or("nothing is known of why")
    }

    /// Returns `true` if the pod shut down with its full grace period.
    #[must_use]
    pub fn had_its_full_grace(&self) -> bool {
        matches!(self.fate, Fate::Clean | Fate::Forced) && self.given_s.is_none()
    }

    /// Returns the number of eviction requests that `PodDisruptionBudgets` blocked.
    #[must_use]
    pub fn refusals(&self) -> u32 {
        let answers =
            [BLOCKED_BY_BUDGET, BLOCKED_BY_SEVERAL_BUDGETS].iter().filter_map(|answer| self.answers.get(*answer));
        answers.copied().fold(0, u32::saturating_add)
    }

    /// Creates a record for tests.
    #[cfg(test)]
    pub(crate) fn sample(pod: &str, fate: Fate, refusals: u32) -> Self {
        Self {
            evictions: 1,
            answers: [(BLOCKED_BY_BUDGET.into(), refusals)].into(),
            requested_ms: Some(843),
            gone_ms: Some(9120),
            ..Self::of(pod.to_owned(), "0b6c1c9e-5a77-4f0b-9a53-0a4f4f2d7c11".to_owned(), fate, Duration::from_secs(30))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_spells_each_fate_like_as_str() {
        for fate in Fate::ALL {
            assert_eq!(json!(fate), fate.as_str());
        }
    }

    #[test]
    fn refusals_count_answers_of_budgets_only() {
        let mut pod = PodRecord::sample("shop/web-0", Fate::Lost, 2);
        pod.answers.extend([(BLOCKED_BY_SEVERAL_BUDGETS.into(), 3), ("throttled".into(), 7)]);
        assert_eq!(pod.refusals(), 5);
        pod.answers.insert(BLOCKED_BY_BUDGET.into(), u32::MAX);
        assert_eq!(pod.refusals(), u32::MAX, "saturates");
    }

    #[test]
    fn full_grace_requires_an_end_without_a_shorter_period() {
        let with = |fate, given_s| PodRecord { given_s, ..PodRecord::sample("shop/web-0", fate, 0) };
        for (fate, given_s, full) in [
            (Fate::Clean, None, true),
            (Fate::Forced, None, true),
            (Fate::Forced, Some(5), false),
            (Fate::Clamped, Some(5), false),
            (Fate::Lost, None, false),
        ] {
            assert_eq!(with(fate, given_s).had_its_full_grace(), full, "{fate:?}, {given_s:?}");
        }
    }
}
