//! Whether to act on an interruption, or the reason why not. Pure.

use spillway_eks::ClusterName;

use crate::instance::{Instance, Membership, Owner, membership, owner};
use crate::interruption::{Interruption, Kind};
use crate::settings::{Action, Settings};

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Drain the node of this cluster.
    Drain(ClusterName),
    /// Leave everything as it is.
    Ignore(Reason),
    /// Acting could hit the wrong node.
    Refuse(Refusal),
}

/// Why an interruption is ignored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Reason {
    #[error("{0}")]
    NotHandled(String),
    #[error("the setting {0} says ignore")]
    Setting(&'static str),
    #[error("EC2 knows no instance {0}")]
    NoInstance(String),
    #[error("instance {0} has no tag that names an EKS cluster")]
    NoCluster(String),
    #[error("the node belongs to a managed node group, which EKS drains itself")]
    ManagedNodeGroup,
    #[error("the node belongs to Karpenter, which drains it itself")]
    Karpenter,
    #[error("the node belongs to EKS Auto Mode, which drains it itself")]
    AutoMode,
    #[error("the lifecycle hook waited no longer, before the node was cordoned")]
    HookIsOver,
    #[error("not a node of ours: cluster {cluster} has no node with the provider id {provider_id}")]
    NoNode { cluster: ClusterName, provider_id: String },
}

/// Why acting would be wrong, which somebody has to mend.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("the tags of instance {instance} name several clusters: {}; leave one", clusters.join(", "))]
    SeveralClusters { instance: String, clusters: Vec<String> },
}

/// What the settings say about a kind of notice, before anything is asked of AWS.
pub(crate) fn by_setting(interruption: &Interruption, settings: &Settings) -> Option<Reason> {
    let (action, name) = match interruption.kind {
        Kind::Spot => (settings.spot, "SPILLWAY_SPOT"),
        Kind::Terminate => (settings.terminate, "SPILLWAY_TERMINATE"),
    };
    match action {
        Action::Drain => None,
        Action::Ignore => Some(Reason::Setting(name)),
    }
}

/// Decides by what EC2 says of the instance.
pub(crate) fn by_instance(instance: &Instance) -> Decision {
    let cluster = match membership(&instance.tags) {
        Membership::In(cluster) => cluster,
        Membership::NoCluster => return Decision::Ignore(Reason::NoCluster(instance.id.to_string())),
        Membership::Several(clusters) => {
            return Decision::Refuse(Refusal::SeveralClusters { instance: instance.id.to_string(), clusters });
        }
    };
    match owner(&instance.tags) {
        Owner::SelfManaged => Decision::Drain(cluster),
        Owner::ManagedNodeGroup => Decision::Ignore(Reason::ManagedNodeGroup),
        Owner::Karpenter => Decision::Ignore(Reason::Karpenter),
        Owner::AutoMode => Decision::Ignore(Reason::AutoMode),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use crate::interruption::InstanceId;

    fn decide(tags: &[(&str, &str)]) -> Decision {
        by_instance(&Instance {
            id: InstanceId::parse("i-0123456789abcdef0").unwrap(),
            zone: "us-east-1a".to_owned(),
            private_dns_name: None,
            tags: tags.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        })
    }

    #[test]
    fn a_self_managed_node_is_drained() {
        assert_eq!(decide(&[("kubernetes.io/cluster/prod", "owned")]), Decision::Drain(ClusterName::new("prod")));
    }

    #[test]
    fn an_instance_of_no_cluster_is_ignored() {
        let Decision::Ignore(reason) = decide(&[("Name", "bastion")]) else { panic!("not ignored") };
        assert_eq!(reason.to_string(), "instance i-0123456789abcdef0 has no tag that names an EKS cluster");
    }

    #[test]
    fn nodes_that_have_a_drainer_of_their_own_are_left_to_it() {
        let cluster = ("aws:eks:cluster-name", "prod");
        assert_eq!(decide(&[cluster, ("eks:nodegroup-name", "blue")]), Decision::Ignore(Reason::ManagedNodeGroup));
        assert_eq!(decide(&[cluster, ("karpenter.sh/nodepool", "default")]), Decision::Ignore(Reason::Karpenter));
        assert_eq!(decide(&[("eks:eks-cluster-name", "prod")]), Decision::Ignore(Reason::AutoMode));
    }

    #[test]
    fn tags_that_name_two_clusters_are_refused() {
        let Decision::Refuse(refusal) =
            decide(&[("kubernetes.io/cluster/a", "owned"), ("kubernetes.io/cluster/b", "owned")])
        else {
            panic!("not refused")
        };
        assert_eq!(
            refusal.to_string(),
            "the tags of instance i-0123456789abcdef0 name several clusters: a, b; leave one"
        );
    }
}
