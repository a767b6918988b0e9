//! The steps of a drain, and the request that each one is known by.

use serde::{Deserialize, Serialize};

/// A step that asks somebody for something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Step {
    FindInstance,
    FindCluster,
    Claim,
    List,
    Evict,
    Watch,
    Heartbeat,
    Complete,
}

/// Who is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Server {
    Kubernetes,
    /// By the service's name in a signature.
    Aws(&'static str),
}

impl Step {
    pub(super) const ALL: [Self; 8] = [
        Self::FindInstance,
        Self::FindCluster,
        Self::Claim,
        Self::List,
        Self::Evict,
        Self::Watch,
        Self::Heartbeat,
        Self::Complete,
    ];

    pub(super) fn in_words(self) -> &'static str {
        match self {
            Self::FindInstance => "find the instance",
            Self::FindCluster => "find the cluster",
            Self::Claim => "claim",
            Self::List => "list",
            Self::Evict => "evict",
            Self::Watch => "watch",
            Self::Heartbeat => "heartbeat",
            Self::Complete => "complete",
        }
    }

    /// The request, as the gateway names it.
    pub(super) fn call(self) -> &'static str {
        match self {
            Self::FindInstance => "ec2:DescribeInstances",
            Self::FindCluster => "eks:DescribeCluster",
            Self::Claim => "patch nodes",
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
            Self::Heartbeat | Self::Complete => Server::Aws("autoscaling"),
            Self::Claim | Self::List | Self::Evict | Self::Watch => Server::Kubernetes,
        }
    }

    /// Whether the function knows the node's pods by then. The first heartbeat comes before the claim.
    pub(super) fn is_after_list(self) -> bool {
        match self {
            Self::FindInstance | Self::FindCluster | Self::Claim | Self::List | Self::Heartbeat => false,
            Self::Evict | Self::Watch | Self::Complete => true,
        }
    }

    /// Whether there must be a lifecycle hook for it to be reached.
    pub(super) fn needs_hook(self) -> bool {
        matches!(self, Self::Heartbeat | Self::Complete)
    }
}
