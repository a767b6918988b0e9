//! Who an instance is: its cluster, its state, who manages its node, read from what EC2 says of it. Pure.

use std::collections::BTreeMap;

use spillway_notice::InstanceId;

use crate::cluster::ClusterName;

/// Auto Scaling's own tag on its instances.
const GROUP: &str = "aws:autoscaling:groupName";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    pub id: InstanceId,
    /// The availability zone, which stands in the node's provider id.
    pub zone: String,
    /// The private DNS name: the first guess at the node's name. EC2 takes it away from an
    /// instance that has ended.
    pub private_dns_name: Option<String>,
    pub state: InstanceState,
    pub type_name: Option<String>,
    pub tags: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstanceState {
    Up,
    GoingDown,
    Down,
}

impl Instance {
    /// What the node has as `spec.providerID`, as a rule.
    pub fn provider_id(&self) -> String {
        format!("aws:///{}/{}", self.zone, self.id)
    }

    /// Whether that provider id names it: the cloud provider also takes one without the zone, and the bare instance id.
    pub fn is_named_by(&self, provider_id: &str) -> bool {
        provider_id.rsplit('/').next() == Some(self.id.as_str())
    }

    /// The instance as far as its node tells. Its tags are not known, so the node's labels say who manages it. `None`: the
    /// node is of another instance.
    pub fn of_node(id: &InstanceId, name: &str, provider_id: &str) -> Option<Self> {
        let (zone, last) = provider_id.strip_prefix("aws:///")?.split_once('/')?;
        (last == id.as_str()).then(|| Self {
            id: id.clone(),
            zone: zone.to_owned(),
            private_dns_name: Some(name.to_owned()),
            state: InstanceState::Up,
            type_name: None,
            tags: BTreeMap::new(),
        })
    }

    pub fn group(&self) -> Option<&str> {
        self.tags.get(GROUP).map(String::as_str)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Membership {
    /// Exactly one.
    In(ClusterName),
    /// None: not a node of EKS.
    NoCluster,
    /// More than one: draining either could be wrong.
    Several(Vec<String>),
}

/// EKS' own tag, whose value is the cluster's name. Nobody but AWS can write it.
const EKS_TAG: &str = "aws:eks:cluster-name";
/// Others with the name for value: managed node groups'; Karpenter's and Auto Mode's.
const NAME_TAGS: [&str; 2] = ["eks:cluster-name", "eks:eks-cluster-name"];
/// The older convention: the name is part of the key, and the value says `owned` or `shared`.
const KEY_PREFIX: &str = "kubernetes.io/cluster/";

/// Reads the cluster from an instance's tags. Where EKS' own tag is there it decides, whatever somebody has written beside it.
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
    /// EKS Fargate. No tag says so, only a label of the node.
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

/// The tags that say that Karpenter or EKS Auto Mode manages a node.
pub const TAGS_OF_OWNERS: [&str; 4] = [
    "karpenter.k8s.aws/ec2nodeclass",
    "karpenter.sh/nodeclaim",
    // Karpenter sets this one too; without the two above it is Auto Mode's.
    "eks:eks-cluster-name",
    "karpenter.sh/nodepool",
];

/// Reads who manages the node from an instance's tags. Neither Karpenter nor Auto Mode has Auto Scaling groups, and nobody but AWS
/// can write a group's tag: on an instance of a group the tags of these two are not believed.
pub fn managed_by(tags: &BTreeMap<String, String>) -> ManagedBy {
    if tags.contains_key("eks:nodegroup-name") {
        return ManagedBy::ManagedNodeGroup;
    }
    match tag_of_owner(tags) {
        Some((owner, _)) if !tags.contains_key(GROUP) => owner,
        _ => ManagedBy::SelfManaged,
    }
}

/// What is wrong with the tags of an instance of a group that say that Karpenter or Auto Mode manages it.
pub fn disbelieved_tag(tags: &BTreeMap<String, String>) -> Option<String> {
    let (owner, tag) = tag_of_owner(tags)?;
    let group = tags.get(GROUP).filter(|_| managed_by(tags) == ManagedBy::SelfManaged)?;
    let owner = if owner == ManagedBy::Karpenter { "Karpenter" } else { "EKS Auto Mode" };
    Some(format!(
        "the tag {tag} says that {owner} manages the instance, which is in Auto Scaling group {group}: the tag is not believed, \
         and the node's labels decide"
    ))
}

/// Whose the tags say that an instance is, if Karpenter's or Auto Mode's, and which one says it.
fn tag_of_owner(tags: &BTreeMap<String, String>) -> Option<(ManagedBy, &'static str)> {
    let tag = TAGS_OF_OWNERS.into_iter().find(|tag| tags.contains_key(*tag))?;
    Some((if tag.starts_with("eks:") { ManagedBy::AutoMode } else { ManagedBy::Karpenter }, tag))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_provider_id_names_its_instance_with_and_without_the_zone() {
        let instance = Instance {
            id: InstanceId::parse("i-0123456789abcdef0").unwrap(),
            zone: "us-east-1a".to_owned(),
            private_dns_name: None,
            state: InstanceState::Up,
            type_name: None,
            tags: BTreeMap::new(),
        };
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
    fn a_node_names_its_own_instance_and_no_other() {
        let id = InstanceId::parse("i-0123456789abcdef0").unwrap();
        let zone_of = |provider_id| Instance::of_node(&id, "n-1", provider_id).map(|instance| instance.zone);
        assert_eq!(zone_of("aws:///us-east-1a/i-0123456789abcdef0").as_deref(), Some("us-east-1a"));
        assert_eq!(zone_of("aws:////i-0123456789abcdef0").as_deref(), Some(""));
        assert_eq!(zone_of("aws:///us-east-1a/i-0fffffffffffffff0"), None);
    }

    #[test]
    fn the_receipt_names_who_manages_the_node() {
        let by_tag = |key| managed_by(&tags(&[(key, "")])).as_str();
        assert_eq!(by_tag("eks:nodegroup-name"), "managed-node-group");
        assert_eq!(by_tag("karpenter.sh/nodeclaim"), "karpenter");
        assert_eq!(by_tag("eks:eks-cluster-name"), "auto-mode");
        assert_eq!(by_tag("Name"), "self-managed");
    }

    #[test]
    fn each_way_of_tagging_names_the_cluster() {
        for key in [EKS_TAG].into_iter().chain(NAME_TAGS) {
            assert_eq!(membership(&tags(&[(key, "prod")])), Membership::In(ClusterName::new("prod")), "{key}");
        }
        for value in ["owned", "shared"] {
            let tagged = tags(&[("kubernetes.io/cluster/prod", value)]);
            assert_eq!(membership(&tagged), Membership::In(ClusterName::new("prod")), "{value}");
        }
    }

    #[test]
    fn tags_that_agree_name_one_cluster() {
        let tagged = tags(&[("eks:cluster-name", "prod"), ("kubernetes.io/cluster/prod", "owned")]);
        assert_eq!(membership(&tagged), Membership::In(ClusterName::new("prod")));
    }

    #[test]
    fn an_instance_without_such_a_tag_is_in_no_cluster() {
        let tagged = tags(&[("Name", "prod"), ("kubernetes.io/cluster/prod", "no"), ("eks:cluster-name", "")]);
        assert_eq!(membership(&tagged), Membership::NoCluster);
    }

    #[test]
    fn the_tag_that_only_aws_writes_decides() {
        let tagged = tags(&[("aws:eks:cluster-name", "prod"), ("kubernetes.io/cluster/stage", "owned")]);
        assert_eq!(membership(&tagged), Membership::In(ClusterName::new("prod")));
    }

    #[test]
    fn tags_that_name_two_clusters_are_not_guessed_from() {
        let tagged = tags(&[("eks:cluster-name", "prod"), ("kubernetes.io/cluster/stage", "owned")]);
        assert_eq!(membership(&tagged), Membership::Several(vec!["prod".to_owned(), "stage".to_owned()]));
    }

    #[test]
    fn tag_that_names_no_possible_eks_cluster_is_none() {
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
    fn the_owner_is_read_from_the_tags() {
        assert_eq!(managed_by(&tags(&[("aws:autoscaling:groupName", "workers")])), ManagedBy::SelfManaged);
        assert_eq!(managed_by(&tags(&[("eks:nodegroup-name", "blue")])), ManagedBy::ManagedNodeGroup);
        let karpenter = [
            ("karpenter.sh/nodepool", "default"),
            ("eks:eks-cluster-name", "prod"),
            ("karpenter.k8s.aws/ec2nodeclass", "default"),
        ];
        assert_eq!(managed_by(&tags(&karpenter)), ManagedBy::Karpenter);
        assert_eq!(
            managed_by(&tags(&[("eks:eks-cluster-name", "prod"), ("karpenter.sh/nodepool", "general")])),
            ManagedBy::AutoMode
        );
        assert_eq!(managed_by(&tags(&[("karpenter.sh/nodepool", "default")])), ManagedBy::Karpenter);
    }

    #[test]
    fn an_instance_of_a_group_is_neither_karpenters_nor_auto_modes_whatever_its_tags_say() {
        for (tag, owner) in [
            ("karpenter.k8s.aws/ec2nodeclass", "Karpenter"),
            ("karpenter.sh/nodeclaim", "Karpenter"),
            ("karpenter.sh/nodepool", "Karpenter"),
            ("eks:eks-cluster-name", "EKS Auto Mode"),
        ] {
            let alone = tags(&[(tag, "x")]);
            assert_ne!(managed_by(&alone), ManagedBy::SelfManaged, "{tag}");
            assert_eq!(disbelieved_tag(&alone), None, "{tag}");
            let grouped = tags(&[(tag, "x"), ("aws:autoscaling:groupName", "workers")]);
            assert_eq!(managed_by(&grouped), ManagedBy::SelfManaged, "{tag}");
            let told = format!(
                "the tag {tag} says that {owner} manages the instance, which is in Auto Scaling group workers: the tag is not \
                 believed, and the node's labels decide"
            );
            assert_eq!(disbelieved_tag(&grouped), Some(told));
        }
        let managed =
            [("eks:nodegroup-name", "blue"), ("aws:autoscaling:groupName", "eks-blue"), ("karpenter.sh/nodepool", "x")];
        assert_eq!(
            (managed_by(&tags(&managed)), disbelieved_tag(&tags(&managed))),
            (ManagedBy::ManagedNodeGroup, None)
        );
        assert_eq!(disbelieved_tag(&tags(&managed[1..2])), None);
    }
}
