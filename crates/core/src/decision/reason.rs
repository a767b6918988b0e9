//! Why a notice is ignored, or refused, in plain words.

use jiff::Timestamp;

use super::Switch;
use crate::cluster::ClusterName;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    #[error("{0}")]
    NotHandled(String),
    #[error("{0}")]
    SwitchedOff(Switch),
    #[error("lifecycle hook {0} is not one of those that Hooks names")]
    NotOurHook(String),
    #[error("the notice is dated {0}, ahead of the function's clock: AWS has not sent it")]
    FromTheFuture(Timestamp),
    #[error("the notice is dated {0}, and AWS brings none of this kind so late: somebody has sent it again")]
    TooOld(Timestamp),
    #[error("the notice announces something for {0}, further ahead than AWS does")]
    TooFarAhead(Timestamp),
    #[error("the notice is of a hook of Auto Scaling group {named}, and instance {instance} is of group {own}")]
    AnotherGroup { instance: String, named: String, own: String },
    #[error("EC2 knows no instance {0}")]
    NoInstance(String),
    #[error("EC2 knows no instance that runs in capacity reservation {0}")]
    EmptyReservation(String),
    #[error("instance {0} has no tag that names an EKS cluster")]
    NoCluster(String),
    #[error("cluster {0} is not one of those that Clusters names")]
    NotOurCluster(ClusterName),
    #[error(
        "the tags of instance {instance} name the clusters {}, and Clusters names none of them",
        clusters.join(", ")
    )]
    NotOurClusters { instance: String, clusters: Vec<String> },
    #[error("cluster {cluster} does not let the function in, so that it has cordoned nothing there: it answers {code}")]
    NotLetIn { cluster: ClusterName, code: u16 },
    #[error("EKS has no cluster {0} in this account and Region: nothing was cordoned there")]
    UnknownCluster(ClusterName),
    #[error("cluster {0} could not be reached, and is not tried again: the doctor says why")]
    Unreachable(ClusterName),
    #[error("neither instance {instance} nor its Auto Scaling group has the tag {tag}, which ManagedTag names")]
    NoManagedTag { instance: String, tag: String },
    #[error("the node belongs to a managed node group, and the parameter ManagedNodeGroups is off")]
    ManagedNodeGroup,
    #[error("the node belongs to a managed node group, and EKS drains it itself for this notice")]
    ManagedNodeGroupDrainsItself,
    #[error("the node belongs to Karpenter, which drains it itself")]
    Karpenter,
    #[error("the node belongs to Karpenter, which has no Auto Scaling group: this hook is not ours")]
    KarpenterHasNoGroup,
    #[error("node {0} has no NodeClaim, though its instance has Karpenter's tags")]
    NoNodeClaim(String),
    #[error("NodeClaim {claim}, which node {node} names as its owner, is of {names}: neither is touched")]
    NodeClaimOfAnother { node: String, claim: String, names: String },
    #[error("the node belongs to EKS Auto Mode, which drains it itself")]
    AutoMode,
    #[error("the node's label says that it is Fargate's, whose pods EKS manages")]
    Fargate,
    #[error("the node's label says that it is a hybrid node, which no notice of AWS is about")]
    Hybrid,
    #[error("node {0} has the label spillway/ignore")]
    OptedOut(String),
    #[error("node {0} was given back, or somebody uncordoned it, since its drain began: it is drained no further")]
    GivenBack(String),
    #[error("node {0} does not have the labels that NodeSelector asks for")]
    NotSelected(String),
    #[error("nothing is left to drain, and Taints does not name out-of-service")]
    NothingLeft,
    #[error("no claim of ours is for a {0} that is over")]
    NothingToUndo(&'static str),
    #[error("EC2 has named maintenance of instance {0} and names it no longer, or as done or called off")]
    NoLongerNamed(String),
    #[error(
        "EC2 names another time by now, {starts}, for the maintenance of instance {instance}: it is scheduled for then"
    )]
    Moved { instance: String, starts: Timestamp },
    #[error("instance {0} runs again")]
    RunsAgain(String),
    #[error("instance {0} was to go long ago, and still runs")]
    StillRuns(String),
    #[error(
        "the maintenance of node {0} was to begin before now, and its drain has not begun, or is over: whether its reboot is still to come nobody says"
    )]
    MaintenanceBegan(String),
    #[error("instance {0} does not run: its node stays as it is")]
    NotUp(String),
    #[error("instance {0} is neither stopped nor terminated")]
    NotDown(String),
    #[error("node {0} is Ready: what runs there has not stopped")]
    StillReady(String),
    #[error("the lifecycle hook waited no longer, before the node was cordoned")]
    HookIsOver,
    #[error("instance {0} goes into its warm pool, where no node of it is waited for")]
    IntoWarmPool(String),
    #[error("the launch hook waited no longer, before the node was Ready")]
    LaunchIsOver,
    #[error("not a node of ours: cluster {cluster} has no node with the provider id {provider_id}")]
    NoNode { cluster: ClusterName, provider_id: String },
}

impl Reason {
    /// Whether the instance is in no cluster of ours, or none was looked for because nothing could follow.
    pub fn is_not_ours(&self) -> bool {
        matches!(
            self,
            Self::SwitchedOff(_)
                | Self::NothingLeft
                | Self::NoInstance(_)
                | Self::NoCluster(_)
                | Self::NotOurCluster(_)
                | Self::NotOurClusters { .. }
                | Self::NotLetIn { .. }
                | Self::UnknownCluster(_)
                | Self::Unreachable(_)
        )
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error(
        "the tags of instance {instance} name several clusters: {}; name the cluster in Clusters, or leave one tag",
        clusters.join(", ")
    )]
    SeveralClusters { instance: String, clusters: Vec<String> },
}
