//! When what was done, in milliseconds from the notice.

use serde::{Deserialize, Serialize};

/// The window of a drain, in milliseconds from the notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WindowRecord {
    /// When it began.
    pub start_ms: i64,
    /// When this invocation has to stop.
    pub end_ms: i64,
    /// When the instance goes; absent while something may wait for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<i64>,
    /// Seconds kept before it goes.
    pub margin_s: u64,
}

/// How long was waited when the last pod had gone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AfterDrain {
    /// Milliseconds for pods that the scheduler bound just before it saw the cordon.
    pub late_pods_ms: u64,
    /// Milliseconds until the volumes that were attached to the node were detached; absent if none was waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volumes_ms: Option<u64>,
    /// How many of them were attached still.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volumes_attached: Option<usize>,
    /// Milliseconds until the instance was a target in none of its cluster's target groups; absent if it was in none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub targets_ms: Option<u64>,
    /// In how many it was one still.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub targets_left: Option<usize>,
}

/// A step and when it was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Step {
    pub step: StepName,
    /// Milliseconds from the notice.
    pub at_ms: i64,
}

/// The steps of a drain, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum StepName {
    /// The function began to work on the notice.
    Begun,
    /// EC2 said who the instance is.
    Described,
    /// EC2 did not say who the instance is. Its node was found by its id in a cluster that is known.
    FoundByNode,
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
