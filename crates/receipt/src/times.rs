//! Times of a drain, in milliseconds from the notice.

use serde::{Deserialize, Serialize};

/// The window of a drain, in milliseconds from the notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WindowRecord {
    /// Start of the window.
    pub start_ms: i64,
    /// Latest end of this invocation.
    pub end_ms: i64,
    /// End of the instance; absent while a lifecycle hook may still hold the instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<i64>,
    /// Reserve before the deadline, in seconds.
    pub margin_s: u64,
}

/// Waits after the last pod has gone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AfterDrain {
    /// Wait for pods that the scheduler bound before it observed the cordon, in milliseconds.
    pub late_pods_ms: u64,
    /// Wait for the node's volumes to be detached, in milliseconds; absent without such volumes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volumes_ms: Option<u64>,
    /// Number of volumes still attached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volumes_attached: Option<usize>,
    /// Wait until no target group of the cluster has the instance, in milliseconds; absent if no target group had the instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub targets_ms: Option<u64>,
    /// Number of target groups that still have the instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub targets_left: Option<usize>,
}

/// Step of a drain with its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Step {
    pub step: StepName,
    /// Milliseconds from the notice.
    pub at_ms: i64,
}

/// Steps of a drain, in the order in which they happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum StepName {
    /// The function has started to work on the notice.
    Begun,
    /// EC2 has described the instance.
    Described,
    /// EC2 has not described the instance. A known cluster has a node with the instance's id.
    FoundByNode,
    /// The node is cordoned.
    Claimed,
    /// The node's `NodeClaim` is deleted. Karpenter drains the node.
    NodeClaimDeleted,
    /// The Auto Scaling group has taken the request to replace the instance.
    ReplacementRequested,
    /// The drain is over.
    Drained,
    /// The node of a launched instance is Ready.
    Ready,
    /// The lifecycle action is completed.
    Completed,
    /// A later invocation continues the drain.
    HandedOn,
}
