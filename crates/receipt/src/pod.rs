//! A pod in the receipt: what it asked for, what it got, and how it ended.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The answer of a `PodDisruptionBudget` that does not let a pod go.
pub const BLOCKED_BY_BUDGET: &str = "blocked-by-budget";
/// The answer to the eviction of a pod that more than one `PodDisruptionBudget` covers.
pub const BLOCKED_BY_SEVERAL_BUDGETS: &str = "blocked-by-several-budgets";

/// A pod: its record, or, in the document of a drain that has begun, its name.
//  A fate that only a newer version knows leaves the name, too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Pod {
    AtTheEnd(PodRecord),
    AtTheBegin(Leaving),
}

/// What became of a pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PodRecord {
    pub pod: String,
    #[serde(default)]
    pub uid: String,
    pub fate: Fate,
    /// The grace period it asked for.
    #[serde(default)]
    pub grace_s: u64,
    /// The least that it was given, by whomever, if that was less.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub given_s: Option<u64>,
    /// How often an eviction was asked for; in a dry run, one without effect.
    #[serde(default)]
    pub evictions: u32,
    /// How often each answer was given to the requests that it leave.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub answers: BTreeMap<Cow<'static, str>, u32>,
    /// The budget that blocked its eviction last; of several the names of the first few, joined by a comma and a space.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked_by: Option<String>,
    /// Why it stayed, was forced or was lost, or who else had it leave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// When it was first requested to leave. This and those that follow: milliseconds from the notice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requested_ms: Option<i64>,
    /// When the request that it leave was accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accepted_ms: Option<i64>,
    /// When it had gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gone_ms: Option<i64>,
}

/// A pod that has to leave, in the document of a drain that has begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Leaving {
    pub pod: String,
}

/// A pod's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Fate {
    /// It shut down with all the grace it asked for.
    Clean,
    /// It shut down with less grace than it asked for.
    Clamped,
    /// It was made to leave in spite of what blocked it, so that it could still shut down.
    Forced,
    /// It was left alone.
    Stayed,
    /// It tolerates the cordon and came after it: not waited for.
    Returned,
    /// It was still there when the time was up, and the next invocation goes on with it or its instance is kept.
    Remaining,
    /// It was still there when the time was up.
    #[serde(alias = "left")]
    Lost,
    /// It was shutting down when its node stopped answering, or was stuck in Terminating, so that nobody knows how it ended.
    Unconfirmed,
    /// In a dry run: the API server would let it go.
    WouldLeave,
    /// In a dry run: something would block its eviction.
    WouldBeBlocked,
}

impl Fate {
    /// Every fate.
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

    /// As it stands in the receipt.
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
    /// Its namespace and name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::AtTheEnd(PodRecord { pod, .. }) | Self::AtTheBegin(Leaving { pod }) => pod,
        }
    }

    /// What became of it, if that is known.
    #[must_use]
    pub fn record(&self) -> Option<&PodRecord> {
        match self {
            Self::AtTheEnd(record) => Some(record),
            Self::AtTheBegin(_) => None,
        }
    }

    /// Its end, if that is known.
    #[must_use]
    pub fn fate(&self) -> Option<Fate> {
        self.record().map(|record| record.fate)
    }

    /// Why it came to that end.
    #[must_use]
    pub fn why(&self) -> Option<&str> {
        self.record()?.why.as_deref()
    }
}

impl PodRecord {
    /// A pod that asks for that grace and came to that end, of which nothing else is said.
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

    /// Why it was lost, was forced or stayed.
    #[must_use]
    pub fn why(&self) -> &str {
        self.why.as_deref().unwrap_or("nothing is known of why")
    }

    /// Whether it shut down with all the grace it asked for, by whichever way it was told.
    #[must_use]
    pub fn had_its_full_grace(&self) -> bool {
        matches!(self.fate, Fate::Clean | Fate::Forced) && self.given_s.is_none()
    }

    /// How often a budget refused to let it go.
    #[must_use]
    pub fn refusals(&self) -> u32 {
        let answers =
            [BLOCKED_BY_BUDGET, BLOCKED_BY_SEVERAL_BUDGETS].iter().filter_map(|answer| self.answers.get(*answer));
        answers.copied().fold(0, u32::saturating_add)
    }

    /// A record for tests: a pod of that fate, which a budget refused to let go so often.
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
    fn a_fate_has_one_name() {
        for fate in Fate::ALL {
            assert_eq!(json!(fate), fate.as_str());
        }
    }

    #[test]
    fn refusals_of_one_budget_and_of_several_count_and_no_other_answer() {
        let mut pod = PodRecord::sample("shop/web-0", Fate::Lost, 2);
        pod.answers.extend([(BLOCKED_BY_SEVERAL_BUDGETS.into(), 3), ("throttled".into(), 7)]);
        assert_eq!(pod.refusals(), 5);
        pod.answers.insert(BLOCKED_BY_BUDGET.into(), u32::MAX);
        assert_eq!(pod.refusals(), u32::MAX, "more than a number holds");
    }

    #[test]
    fn a_pod_is_read_as_it_was_written_at_the_end_and_at_the_begin() {
        let leaving = Pod::AtTheBegin(Leaving { pod: "shop/web-0".to_owned() });
        for pod in [Pod::AtTheEnd(PodRecord::sample("shop/web-0", Fate::Forced, 2)), leaving] {
            assert_eq!(serde_json::from_value::<Pod>(json!(pod)).expect("a pod"), pod);
        }
    }

    #[test]
    fn a_pod_has_its_full_grace_unless_it_was_given_less_or_did_not_go() {
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

    #[test]
    fn why_a_pod_was_lost_is_what_was_written_or_that_nothing_is_known() {
        let unknown = PodRecord::sample("shop/web-0", Fate::Lost, 0);
        let known = PodRecord { why: Some("its budget".to_owned()), ..unknown.clone() };
        assert_eq!((known.why(), unknown.why()), ("its budget", "nothing is known of why"));
        let begun = Pod::AtTheBegin(Leaving { pod: "shop/web-0".to_owned() });
        assert_eq!(
            [Pod::AtTheEnd(known), Pod::AtTheEnd(unknown), begun].each_ref().map(Pod::why),
            [Some("its budget"), None, None]
        );
    }
}
