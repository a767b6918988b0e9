//! Reasons to ignore or refuse a notice, with the text for the receipt.

use jiff::Timestamp;
use spillway_notice::{InstanceId, Kind};

use super::Switch;
use crate::cluster::ClusterName;
use crate::instance::ManagedBy;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    #[error("{0}")]
    NotHandled(String),
    #[error("{0}")]
    SwitchedOff(Switch),
    #[error("lifecycle hook {0} is not one of those that Hooks names")]
    NotOurHook(String),
    #[error("the notice is dated {0}, ahead of the function's clock: AWS did not send it")]
    FromTheFuture(Timestamp),
    #[error("the notice is dated {0}, too long ago for its kind: AWS did not send it now")]
    TooOld(Timestamp),
    #[error("the notice announces something for {0}, further ahead than AWS does")]
    TooFarAhead(Timestamp),
    #[error("the notice is of a hook of Auto Scaling group {named}, and instance {instance} is of group {own}")]
    AnotherGroup { instance: InstanceId, named: String, own: String },
    #[error("EC2 knows no instance {0}")]
    NoInstance(InstanceId),
    #[error("EC2 knows no instance that runs in capacity reservation {0}")]
    EmptyReservation(String),
    #[error("instance {0} has no tag that names an EKS cluster")]
    NoCluster(InstanceId),
    #[error("cluster {0} is not one of those that Clusters names")]
    NotOurCluster(ClusterName),
    #[error(
        "the tags of instance {instance} name the clusters {}, and Clusters names none of them",
        clusters.join(", ")
    )]
    NotOurClusters { instance: InstanceId, clusters: Vec<String> },
    #[error("cluster {cluster} denies access with {code}: no node was cordoned there")]
    AccessDenied { cluster: ClusterName, code: u16 },
    #[error("EKS has no cluster {0} in this account and Region: no node was cordoned there")]
    UnknownCluster(ClusterName),
    #[error("cluster {0} could not be reached, and is not tried again: run the doctor")]
    Unreachable(ClusterName),
    #[error("neither instance {instance} nor its Auto Scaling group has the tag {tag}, which ManagedTag names")]
    NoManagedTag { instance: InstanceId, tag: String },
    #[error("{}", exemption.of(*owner))]
    ManagedBy { owner: ManagedBy, exemption: Exemption },
    #[error("node {0} has no NodeClaim, though its instance has Karpenter's tags")]
    NoNodeClaim(String),
    #[error("NodeClaim {claim}, the owner of node {node}, is of {names}: neither is changed")]
    NodeClaimOfAnother { node: String, claim: String, names: String },
    #[error("node {0} has the label spillway/ignore")]
    OptedOut(String),
    #[error("node {0} was uncordoned during its drain: the drain has stopped")]
    GivenBack(String),
    #[error("node {0} does not have the labels of NodeSelector")]
    NotSelected(String),
    #[error("nothing is left to drain, and Taints does not name out-of-service")]
    NothingLeft,
    #[error("the notice {} ends no claim of ours", .0.as_str())]
    NothingToUndo(Kind),
    #[error("EC2 no longer lists the maintenance of instance {0}, or lists it as completed or canceled")]
    NoLongerNamed(InstanceId),
    #[error("EC2 has moved the maintenance of instance {instance} to {starts}: its drain is scheduled for that time")]
    Moved { instance: InstanceId, starts: Timestamp },
    #[error("instance {0} runs again")]
    RunsAgain(InstanceId),
    #[error("instance {0} still runs, long after its deadline")]
    StillRuns(InstanceId),
    #[error("the maintenance of node {0} should have begun, and the node has no claim for it: its reboot may be over")]
    MaintenanceBegan(String),
    #[error("instance {0} does not run: its node stays as it is")]
    NotUp(InstanceId),
    #[error("instance {0} is neither stopped nor terminated")]
    NotDown(InstanceId),
    #[error("node {0} is Ready: its pods have not stopped")]
    StillReady(String),
    #[error("the lifecycle hook was over before the node was cordoned")]
    HookIsOver,
    #[error("instance {0} goes into its warm pool: its node is not waited for")]
    IntoWarmPool(InstanceId),
    #[error("the launch hook was over before the node was Ready")]
    LaunchIsOver,
    #[error("not a node of ours: cluster {cluster} has no node with the provider id {provider_id}")]
    NoNode { cluster: ClusterName, provider_id: String },
}

impl Reason {
    /// Returns `true` if the instance is in no cluster that Spillway handles, or if the settings ignore the notice.
    pub fn is_not_ours(&self) -> bool {
        matches!(
            self,
            Self::SwitchedOff(_)
                | Self::NothingLeft
                | Self::NoInstance(_)
                | Self::NoCluster(_)
                | Self::NotOurCluster(_)
                | Self::NotOurClusters { .. }
                | Self::AccessDenied { .. }
                | Self::UnknownCluster(_)
                | Self::Unreachable(_)
        )
    }
}

/// Reason to leave a node to its owner, for example to Karpenter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exemption {
    DrainsItself,
    SwitchedOff,
    /// The notice comes from an Auto Scaling group, but Karpenter's instances are in no group.
    NoGroup,
    NoInstance,
}

impl Exemption {
    fn of(self, owner: ManagedBy) -> &'static str {
        match (owner, self) {
            (ManagedBy::ManagedNodeGroup, Self::SwitchedOff) => {
                "the node belongs to a managed node group, and the parameter ManagedNodeGroups is off"
            }
            (ManagedBy::ManagedNodeGroup, _) => {
                "the node belongs to a managed node group, which EKS drains itself for this notice"
            }
            (ManagedBy::Karpenter, Self::NoGroup) => {
                "the node belongs to Karpenter, which has no Auto Scaling group: the hook is not ours"
            }
            (ManagedBy::Karpenter, _) => "the node belongs to Karpenter, which drains it itself",
            (ManagedBy::AutoMode, _) => "the node belongs to EKS Auto Mode, which drains it itself",
            (ManagedBy::Fargate, _) => "the node belongs to EKS Fargate, which drains it itself",
            (ManagedBy::Hybrid, _) => "the node belongs to EKS Hybrid Nodes, which has no instance in EC2",
            (ManagedBy::SelfManaged, _) => "the node belongs to its group alone",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error(
        "the tags of instance {instance} name several clusters: {}; name the cluster in Clusters, or leave one tag",
        clusters.join(", ")
    )]
    SeveralClusters { instance: InstanceId, clusters: Vec<String> },
}
