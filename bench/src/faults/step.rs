//! The steps of a drain, and the request that each one is known by.

use serde::{Deserialize, Serialize};

/// A step that asks somebody for something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Step {
    FindInstance,
    /// Whether the group of the instance has the tag that the settings ask for.
    FindTag,
    FindCluster,
    FindHook,
    Claim,
    /// The node is looked at before it is claimed.
    LookAtNode,
    List,
    Evict,
    Watch,
    /// A budget blocks the pods.
    WatchBudgets,
    Delete,
    Heartbeat,
    Complete,
    /// That it is looked later whether the node may be uncordoned.
    Schedule,
    PutEvents,
    /// The node is Karpenter's, and handed to it.
    NodeClaim,
    /// The instance runs again, and its node is uncordoned.
    Undo,
}

/// Who is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Server {
    Kubernetes,
    /// By the service's name in a signature.
    Aws(&'static str),
}

impl Step {
    pub(crate) const ALL: [Self; 17] = [
        Self::FindInstance,
        Self::FindTag,
        Self::FindCluster,
        Self::FindHook,
        Self::Heartbeat,
        Self::Complete,
        Self::Schedule,
        Self::PutEvents,
        Self::Claim,
        Self::LookAtNode,
        Self::List,
        Self::Evict,
        Self::Watch,
        Self::WatchBudgets,
        Self::Delete,
        Self::NodeClaim,
        Self::Undo,
    ];

    pub(crate) fn in_words(self) -> &'static str {
        match self {
            Self::FindInstance => "find the instance",
            Self::FindTag => "find the tag",
            Self::FindCluster => "find the cluster",
            Self::FindHook => "find the hook",
            Self::Schedule => "schedule",
            Self::PutEvents => "put events",
            Self::Claim => "claim",
            Self::LookAtNode => "look at the node",
            Self::WatchBudgets => "watch budgets",
            Self::Delete => "delete",
            Self::NodeClaim => "delete the NodeClaim",
            Self::Undo => "uncordon",
            Self::List => "list",
            Self::Evict => "evict",
            Self::Watch => "watch",
            Self::Heartbeat => "heartbeat",
            Self::Complete => "complete",
        }
    }

    /// The request, as the gateway names it.
    pub(crate) fn call(self) -> &'static str {
        match self {
            Self::FindInstance => "ec2:DescribeInstances",
            Self::FindTag => "autoscaling:DescribeTags",
            Self::FindCluster => "eks:DescribeCluster",
            Self::FindHook => "autoscaling:DescribeLifecycleHooks",
            Self::Schedule => "scheduler:CreateSchedule",
            Self::PutEvents => "events:PutEvents",
            Self::Claim | Self::Undo => "patch nodes",
            Self::LookAtNode => "get nodes",
            Self::WatchBudgets => "watch poddisruptionbudgets",
            Self::Delete => "delete pods",
            Self::NodeClaim => "delete nodeclaims",
            Self::List => "list pods",
            Self::Evict => "create pods/eviction",
            Self::Watch => "watch pods",
            Self::Heartbeat => "autoscaling:RecordLifecycleActionHeartbeat",
            Self::Complete => "autoscaling:CompleteLifecycleAction",
        }
    }

    pub(super) fn server(self) -> Server {
        match self {
            Self::FindInstance => Server::Aws("ec2"),
            Self::FindCluster => Server::Aws("eks"),
            Self::FindTag | Self::FindHook | Self::Heartbeat | Self::Complete => Server::Aws("autoscaling"),
            Self::Schedule => Server::Aws("scheduler"),
            Self::PutEvents => Server::Aws("events"),
            Self::Claim
            | Self::LookAtNode
            | Self::List
            | Self::Evict
            | Self::Watch
            | Self::WatchBudgets
            | Self::Delete
            | Self::NodeClaim
            | Self::Undo => Server::Kubernetes,
        }
    }

    /// Whether the function knows the node's pods by then. The first heartbeat comes before the claim.
    pub(super) fn is_after_list(self) -> bool {
        match self {
            Self::FindInstance
            | Self::FindTag
            | Self::FindCluster
            | Self::FindHook
            | Self::Claim
            | Self::LookAtNode
            | Self::List
            | Self::Heartbeat
            | Self::NodeClaim
            | Self::Undo => false,
            Self::Evict
            | Self::Watch
            | Self::WatchBudgets
            | Self::Delete
            | Self::Complete
            | Self::Schedule
            | Self::PutEvents => true,
        }
    }

    /// Whether there must be a lifecycle hook for it to be reached.
    pub(super) fn needs_hook(self) -> bool {
        matches!(self, Self::FindTag | Self::FindHook | Self::Heartbeat | Self::Complete)
    }

    /// Whether a budget must block the pods for it to be reached.
    pub(super) fn needs_budget(self) -> bool {
        matches!(self, Self::WatchBudgets | Self::Delete)
    }

    /// Whether pods have to leave by that notice: not where Karpenter has them leave, and not where they have left before.
    pub(super) fn is_of_drain(self) -> bool {
        !matches!(self, Self::NodeClaim | Self::Undo)
    }
}
