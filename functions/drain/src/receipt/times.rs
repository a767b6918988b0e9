//! When what was done, in milliseconds from the notice.

use serde::Serialize;
use tokio::time::Instant;

use crate::drain::deadline::Window;

/// The window of a drain, in milliseconds from the notice.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct WindowRecord {
    /// When it began.
    pub(crate) start_ms: i64,
    /// When this invocation has to stop.
    pub(crate) end_ms: i64,
    /// When the instance goes; absent while something may wait for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) deadline_ms: Option<i64>,
    /// Seconds kept before it goes.
    pub(super) margin_s: u64,
}

impl WindowRecord {
    /// The window, whose instants `ms` turns into milliseconds from the notice.
    pub(super) fn of(window: Window, ms: impl Fn(Instant) -> i64) -> Self {
        Self {
            start_ms: ms(window.start),
            end_ms: ms(window.end),
            deadline_ms: window.instance_goes.hard().map(&ms),
            margin_s: window.margin.as_secs(),
        }
    }
}

/// How long was waited when the last pod had gone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct AfterDrain {
    /// Milliseconds for pods that the scheduler bound just before it saw the cordon.
    pub(crate) late_pods_ms: u64,
    /// Milliseconds until the volumes of the pods that left were detached; absent if none was waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) volumes_ms: Option<u64>,
    /// How many of them were attached still.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) volumes_attached: Option<usize>,
    /// Milliseconds until the instance was a target in none of its cluster's target groups; absent if it was in none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) targets_ms: Option<u64>,
    /// In how many it was one still.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) targets_left: Option<usize>,
}

/// A step and when it was done.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Step {
    pub(crate) step: StepName,
    /// Milliseconds from the notice.
    pub(crate) at_ms: i64,
}

/// The steps of a drain, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub(crate) enum StepName {
    /// The function began to work on the notice.
    Begun,
    /// EC2 said who the instance is.
    Described,
    /// The node is cordoned.
    Claimed,
    /// The node's `NodeClaim` is deleted: the rest is Karpenter's.
    NodeClaimDeleted,
    /// The drain is over.
    Drained,
    /// The node of a launched instance is Ready.
    Ready,
    /// The lifecycle action is completed.
    Completed,
    /// What is left is a later invocation's.
    HandedOn,
}
