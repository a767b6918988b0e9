//! Times of a drain, in milliseconds from the notice.

use serde::{Deserialize, Serialize};

/// Time window of a drain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WindowRecord {
    /// Start of the drain, possibly in an earlier invocation.
    pub start_ms: i64,
    /// Time limit for the drain in this invocation.
    pub end_ms: i64,
    /// Time at which the instance goes down. Absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<i64>,
    /// Safety margin before the deadline, in seconds.
    pub margin_s: u64,
}

/// Durations for which the drain waited after the last pod had gone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AfterDrain {
    /// Milliseconds that the drain watched the empty node. The scheduler may still bind pods shortly after the cordon.
    pub late_pods_ms: u64,
    /// Milliseconds that the drain waited for volumes to be detached. Absent if there were no volumes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volumes_ms: Option<u64>,
    /// Number of volumes that were still attached when the drain stopped waiting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volumes_attached: Option<usize>,
    /// Milliseconds that the drain waited for load balancers to deregister the instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub targets_ms: Option<u64>,
    /// Number of target groups that still had the instance when the drain stopped waiting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub targets_left: Option<usize>,
}

/// Step of a drain with its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Step {
    pub step: StepName,
    /// Time of the step, in milliseconds from the notice.
    pub at_ms: i64,
}

/// Steps of an invocation, in chronological order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum StepName {
    /// The function has started to work on the notice.
    Begun,
    /// EC2 has described the instance.
    Described,
    /// EC2 did not answer quickly. The function found the instance as a node of a cluster.
    FoundByNode,
    /// The node is claimed and cordoned.
    Claimed,
    /// The node's `NodeClaim` is deleted. Karpenter drains the node.
    NodeClaimDeleted,
    /// The Auto Scaling group has accepted the request to replace the instance.
    ReplacementRequested,
    /// The drain has ended. Pods may still be on the node.
    Drained,
    /// The node of a launched instance is Ready.
    Ready,
    /// The lifecycle action is completed.
    Completed,
    /// The function has started or scheduled a later invocation.
    HandedOn,
}
