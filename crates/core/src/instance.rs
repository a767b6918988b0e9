//! EC2 instance, and its cluster and owner according to its tags. Pure.

use std::collections::BTreeMap;

use spillway_notice::InstanceId;

use crate::cluster::ClusterName;

/// Tag with the name of the instance's Auto Scaling group.
const GROUP: &str = "aws:autoscaling:groupName";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    pub id: InstanceId,
    /// Availability Zone, which is a part of the node's provider id.
    pub zone: String,
    /// Private DNS name, usually also the node's name; absent after termination.
    pub private_dns_name: Option<String>,
    pub state: InstanceState,
    pub type_name: Option<String>,
    /// Id of the Spot request that launched the instance, if any.
    pub spot_request: Option<String>,
    pub tags: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstanceState {
    Up,
    GoingDown,
    Down,
}

impl Instance {
    /// Returns the usual `spec.providerID` of the node.
    pub fn provider_id(&self) -> String {
        format!("aws:///{}/{}", self.zone, self.id)
    }

    /// Returns `true` if the provider id ends with the id of this instance. The zone is not compared.
    pub fn is_named_by(&self, provider_id: &str) -> bool {
        provider_id.rsplit('/').next() == Some(self.id.as_str())
    }

    /// Creates the instance from the data of its node, without EC2's tags. `None`: the node belongs to another
    /// instance.
    pub fn of_node(id: &InstanceId, name: &str, provider_id: &str) -> Option<Self> {
        let (zone, last) = provider_id.strip_prefix("aws:///")?.split_once('/')?;
        (last == id.as_str()).then(|| Self {
            id: id.clone(),
            zone: zone.to_owned(),
            private_dns_name: Some(name.to_owned()),
            state: InstanceState::Up,
            type_name: None,
            spot_request: None,
            tags: BTreeMap::new(),
        })
    }

    pub fn group(&self) -> Option<&str> {
        self.tags.get(GROUP).map(String::as_str)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Membership {
    In(ClusterName),
    /// The tags name no EKS cluster.
    NoCluster,
    /// The tags name several EKS clusters.
    Several(Vec<String>),
}

/// Tag with the cluster's name as value. Only AWS can write tags with the prefix `aws:`.
const EKS_TAG: &str = "aws:eks:cluster-name";
/// Tags of managed node groups, Karpenter and Auto Mode. The value is the cluster's name.
const NAME_TAGS: [&str; 2] = ["eks:cluster-name", "eks:eks-cluster-name"];
/// Prefix of a tag key that ends with the cluster's name. The value is `owned` or `shared`.
const KEY_PREFIX: &str = "kubernetes.io/cluster/";

/// Reads the cluster from an instance's tags. `EKS_TAG` takes precedence over all other tags.
pub fn membership(tags: &BTreeMap<String, String>) -> Membership {
    if let Some(name) = tags.get(EKS_TAG).filter(|name| ClusterName::is_possible(name)) {
        return Membership::In(ClusterName::new(name));
    }
    let by_value = NAME_TAGS.iter().filter_map(|key| tags.get(*key));
    let by_key = tags.iter().filter(|(_, value)| matches!(value.as_str(), "owned" | "shared"));
    let mut names: Vec<String> = by_value
        .cloned()
        .chain(by_key.filter_map(|(key, _)| key.strip_prefix(KEY_PREFIX)).map(str::to_owned))
        .collect();
    names.retain(|name| ClusterName::is_possible(name));
    names.sort_unstable();
    names.dedup();
    match names.as_slice() {
        [] => Membership::NoCluster,
        [name] => Membership::In(ClusterName::new(name)),
        _ => Membership::Several(names),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ManagedBy {
    SelfManaged,
    ManagedNodeGroup,
    Karpenter,
    AutoMode,
    /// EKS Fargate, recognized only by a node label.
    Fargate,
    Hybrid,
}

impl ManagedBy {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SelfManaged => "self-managed",
            Self::ManagedNodeGroup => "managed-node-group",
            Self::Karpenter => "karpenter",
            Self::AutoMode => "auto-mode",
            Self::Fargate => "fargate",
            Self::Hybrid => "hybrid",
        }
    }
}

/// Tags of instances that Karpenter or EKS Auto Mode manages.
pub const OWNER_TAGS: [&str; 4] = [
    "karpenter.k8s.aws/ec2nodeclass",
    "karpenter.sh/nodeclaim",
    // Karpenter sets this tag too. If neither tag above is present, this tag is Auto Mode's.
    "eks:eks-cluster-name",
    "karpenter.sh/nodepool",
];

/// Reads the node's owner from an instance's tags. If the instance is in an Auto Scaling group, [`OWNER_TAGS`] do not count,
/// because Karpenter and Auto Mode have no groups.
pub fn managed_by(tags: &BTreeMap<String, String>) -> ManagedBy {
    if tags.contains_key("eks:nodegroup-name") {
        return ManagedBy::ManagedNodeGroup;
    }
    match owner_tag(tags) {
        Some((owner, _)) if !tags.contains_key(GROUP) => owner,
        _ => ManagedBy::SelfManaged,
    }
}

/// Returns a warning if a self-managed instance of an Auto Scaling group has one of [`OWNER_TAGS`].
pub fn untrusted_owner_tag(tags: &BTreeMap<String, String>) -> Option<String> {
    let (owner, tag) = owner_tag(tags)?;
    let group = tags.get(GROUP).filter(|_| managed_by(tags) == ManagedBy::SelfManaged)?;
    let owner = if owner == ManagedBy::Karpenter { "Karpenter" } else { "EKS Auto Mode" };
    Some(format!(
        "the tag {tag} says that {owner} manages the instance, which is in Auto Scaling group {group}: the tag is ignored, \
         and the node's labels decide"
    ))
}

/// Returns the first of [`OWNER_TAGS`] in `tags`, with its owner: Karpenter or Auto Mode.
fn owner_tag(tags: &BTreeMap<String, String>) -> Option<(ManagedBy, &'static str)> {
    let tag = OWNER_TAGS.into_iter().find(|tag| tags.contains_key(*tag))?;
    Some((if tag.starts_with("eks:") { ManagedBy::AutoMode } else { ManagedBy::Karpenter }, tag))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{self, instance_id, tags};

    #[test]
    fn provider_id_names_its_instance_with_and_without_the_zone() {
        let instance = test_support::instance();
        for own in [&instance.provider_id(), "aws:////i-0123456789abcdef0", "i-0123456789abcdef0"] {
            assert!(instance.is_named_by(own), "{own}");
        }
        for others in [
            "",
            "aws:///us-east-1a/i-0fffffffffffffff0",
            "aws:///us-east-1a/i-0123456789abcdef0/",
            "mi-0123456789abcdef0",
        ] {
            assert!(!instance.is_named_by(others), "{others}");
        }
    }

    #[test]
    fn instance_by_its_node_has_the_zone_of_the_provider_id() {
        let zone_of = |provider_id| Instance::of_node(&instance_id(), "n-1", provider_id).map(|instance| instance.zone);
        assert_eq!(zone_of("aws:///us-east-1a/i-0123456789abcdef0").as_deref(), Some("us-east-1a"));
        assert_eq!(zone_of("aws:////i-0123456789abcdef0").as_deref(), Some(""));
        assert_eq!(zone_of("aws:///us-east-1a/i-0fffffffffffffff0"), None);
    }

    #[test]
    fn cluster_is_read_from_each_convention_of_tags() {
        let prod = || Membership::In(ClusterName::new("prod"));
        let several = Membership::Several(vec!["prod".to_owned(), "stage".to_owned()]);
        let (own, by_key) = (("eks:cluster-name", "prod"), ("kubernetes.io/cluster/prod", "owned"));
        let stage = ("kubernetes.io/cluster/stage", "owned");
        for (pairs, expected) in [
            (&[("aws:eks:cluster-name", "prod")][..], prod()),
            (&[own], prod()),
            (&[("eks:eks-cluster-name", "prod")], prod()),
            (&[by_key], prod()),
            (&[("kubernetes.io/cluster/prod", "shared")], prod()),
            (&[own, by_key], prod()),
            (
                &[("Name", "prod"), ("kubernetes.io/cluster/prod", "no"), ("eks:cluster-name", "")],
                Membership::NoCluster,
            ),
            (&[("aws:eks:cluster-name", "prod"), stage], prod()),
            (&[own, stage], several),
        ] {
            assert_eq!(membership(&tags(pairs)), expected, "{pairs:?}");
        }
    }

    #[test]
    fn impossible_cluster_names_in_tags_are_ignored() {
        let tagged = tags(&[
            ("kubernetes.io/cluster/kube-1", "owned"),
            ("kubernetes.io/cluster/aws:123456789012:eu-central-1:kube-1", "owned"),
            ("kubernetes.io/cluster/-", "owned"),
            ("eks:cluster-name", "team/a"),
        ]);
        assert_eq!(membership(&tagged), Membership::In(ClusterName::new("kube-1")));
        let longest = "a".repeat(100);
        assert!(ClusterName::is_possible(&longest) && !ClusterName::is_possible(&(longest + "a")));
    }

    #[test]
    fn owner_is_read_from_the_tags() {
        let (nodepool, auto_mode) = (("karpenter.sh/nodepool", "default"), ("eks:eks-cluster-name", "prod"));
        let karpenter = ("karpenter.k8s.aws/ec2nodeclass", "default");
        for (pairs, owner) in [
            (&[("aws:autoscaling:groupName", "workers")][..], ManagedBy::SelfManaged),
            (&[("eks:nodegroup-name", "blue")], ManagedBy::ManagedNodeGroup),
            (&[nodepool], ManagedBy::Karpenter),
            (&[nodepool, auto_mode, karpenter], ManagedBy::Karpenter),
            (&[nodepool, auto_mode], ManagedBy::AutoMode),
        ] {
            assert_eq!(managed_by(&tags(pairs)), owner, "{pairs:?}");
        }
    }

    #[test]
    fn owner_tags_of_a_group_instance_are_not_trusted() {
        for (tag, owner) in [
            ("karpenter.k8s.aws/ec2nodeclass", "Karpenter"),
            ("karpenter.sh/nodeclaim", "Karpenter"),
            ("karpenter.sh/nodepool", "Karpenter"),
            ("eks:eks-cluster-name", "EKS Auto Mode"),
        ] {
            let alone = tags(&[(tag, "x")]);
            assert_ne!(managed_by(&alone), ManagedBy::SelfManaged, "{tag}");
            assert_eq!(untrusted_owner_tag(&alone), None, "{tag}");
            let grouped = tags(&[(tag, "x"), ("aws:autoscaling:groupName", "workers")]);
            assert_eq!(managed_by(&grouped), ManagedBy::SelfManaged, "{tag}");
            let warning = untrusted_owner_tag(&grouped).unwrap();
            assert!(warning.starts_with(&format!("the tag {tag} says that {owner} manages the instance")), "{warning}");
        }
        let managed =
            [("eks:nodegroup-name", "blue"), ("aws:autoscaling:groupName", "eks-blue"), ("karpenter.sh/nodepool", "x")];
        assert_eq!(
            (managed_by(&tags(&managed)), untrusted_owner_tag(&tags(&managed))),
            (ManagedBy::ManagedNodeGroup, None)
        );
        assert_eq!(untrusted_owner_tag(&tags(&managed[1..2])), None);
    }
}
