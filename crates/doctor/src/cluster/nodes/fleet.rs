//! Selects the nodes that Spillway drains. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use spillway_core::decision::{self, Decision};
use spillway_core::instance::ManagedBy;
use spillway_core::node::labels::{left_alone, managed_by};
use spillway_core::node::taint::PLANNED;
use spillway_core::node::unclaimed::Unclaimed;
use spillway_notice::{InstanceId, Kind};
use spillway_settings::{NoticeFamily, Settings};

use crate::report::counted;

pub(super) type NodeName = Arc<str>;

#[derive(Debug, Deserialize)]
pub(super) struct ListedNode {
    pub(super) metadata: NodeMetadata,
    #[serde(default)]
    pub(super) spec: ListedSpec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ListedSpec {
    #[serde(rename = "providerID")]
    provider_id: String,
    unschedulable: bool,
    taints: Vec<ListedTaint>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ListedTaint {
    key: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct NodeMetadata {
    pub(super) name: String,
    pub(super) labels: BTreeMap<String, String>,
    #[serde(rename = "ownerReferences")]
    pub(super) owners: Vec<Owner>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Owner {
    kind: String,
}

#[derive(Debug)]
pub(super) struct Fleet {
    settings: Settings,
    pub(super) ours: BTreeSet<NodeName>,
    others: BTreeMap<&'static str, usize>,
    /// Nodes that Spillway drains and that have no `NodeClaim` and no label of Karpenter or EKS.
    pub(super) unowned: BTreeSet<NodeName>,
    /// Instance of each node with the taint `spillway/planned`.
    pub(super) tainted: BTreeMap<NodeName, InstanceId>,
}

impl Fleet {
    /// Creates an empty fleet. The fleet selects the nodes that Spillway would drain with `DrainOn=spot`.
    pub(super) fn new(settings: &Settings) -> Self {
        let settings = Settings { drain_on: vec![NoticeFamily::Spot], ..settings.clone() };
        let (ours, unowned) = (BTreeSet::new(), BTreeSet::new());
        Self { settings, ours, others: BTreeMap::new(), unowned, tainted: BTreeMap::new() }
    }

    pub(super) fn add(&mut self, NodeMetadata { name, labels, owners }: &NodeMetadata) {
        let node: NodeName = Arc::from(name.as_str());
        match self.why_not_ours(name, labels) {
            None => {
                if managed_by(labels).is_none() && owners.iter().all(|owner| owner.kind != "NodeClaim") {
                    self.unowned.insert(Arc::clone(&node));
                }
                self.ours.insert(node);
            }
            Some(why) => *self.others.entry(why).or_default() += 1,
        }
    }

    /// Records a node that has the taint `spillway/planned` and is not cordoned.
    pub(super) fn add_if_planned(&mut self, name: &str, spec: &ListedSpec) {
        let is_planned = !spec.unschedulable && spec.taints.iter().any(|taint| taint.key == PLANNED);
        let instance = spec.provider_id.rsplit('/').next().and_then(InstanceId::parse);
        if let (Some(node), Some(instance), true) = (self.ours.get(name), instance, is_planned) {
            self.tainted.insert(Arc::clone(node), instance);
        }
    }

    fn why_not_ours(&self, name: &str, labels: &BTreeMap<String, String>) -> Option<&'static str> {
        match left_alone(labels, name, &self.settings.node_selector) {
            Some(Unclaimed::OptedOut(_)) => return Some("opted out by the label spillway/ignore"),
            Some(_) => return Some("not selected by NodeSelector"),
            None => {}
        }
        let managed_by = managed_by(labels).unwrap_or(ManagedBy::SelfManaged);
        match decision::by_table(Kind::Spot, managed_by, &self.settings) {
            Decision::Drain => None,
            _ => Some(match managed_by {
                ManagedBy::Karpenter => "Karpenter's",
                ManagedBy::ManagedNodeGroup => "of managed node groups",
                ManagedBy::AutoMode => "of EKS Auto Mode",
                ManagedBy::Fargate => "Fargate's",
                ManagedBy::Hybrid => "hybrid",
                ManagedBy::SelfManaged => "left alone by the settings",
            }),
        }
    }
}

/// Formats the numbers: "8 of 12 nodes are Spillway's to drain (the others: 4 Karpenter's)".
impl fmt::Display for Fleet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ours = self.ours.len();
        let all = ours + self.others.values().sum::<usize>();
        let others: Vec<_> = self.others.iter().map(|(why, count)| format!("{count} {why}")).collect();
        let (nodes, are) = (counted(all, "node"), if ours == 1 { "is" } else { "are" });
        write!(f, "{ours} of {nodes} {are} Spillway's to drain")?;
        if others.is_empty() { Ok(()) } else { write!(f, " (the others: {})", others.join(", ")) }
    }
}

#[cfg(test)]
mod tests {
    use spillway_core::test_support::{settings, tags};

    use super::*;

    fn fleet(variables: &[(&str, &str)], nodes: &[&[(&str, &str)]]) -> String {
        let mut fleet = Fleet::new(&settings(variables));
        for (at, labels) in nodes.iter().enumerate() {
            fleet.add(&node(at, labels));
        }
        fleet.to_string()
    }

    fn node(at: usize, labels: &[(&str, &str)]) -> NodeMetadata {
        NodeMetadata { name: format!("n-{at}"), labels: tags(labels), owners: Vec::new() }
    }

    const KARPENTERS: &[(&str, &str)] = &[("karpenter.sh/nodepool", "default")];
    const MANAGED: &[(&str, &str)] = &[("eks.amazonaws.com/nodegroup", "blue")];

    #[test]
    fn other_nodes_are_counted_by_reason() {
        assert_eq!(
            fleet(&[], &[&[], KARPENTERS, KARPENTERS, MANAGED, &[("spillway/ignore", "")]]),
            "1 of 5 nodes is Spillway's to drain (the others: 2 Karpenter's, 1 of managed node groups, 1 opted out by \
             the label spillway/ignore)"
        );
    }

    #[test]
    fn drained_node_without_label_and_node_claim_is_unowned() {
        let mut fleet = Fleet::new(&settings(&[]));
        let listed =
            serde_json::json!({"metadata": {"name": "n-9", "ownerReferences": [{"kind": "NodeClaim", "name": "c"}]}});
        let owned: ListedNode = serde_json::from_value(listed).unwrap();
        for node in
            [owned.metadata, node(0, &[]), node(1, KARPENTERS), node(2, MANAGED), node(3, &[("spillway/ignore", "")])]
        {
            fleet.add(&node);
        }
        assert_eq!(fleet.unowned.iter().map(AsRef::as_ref).collect::<Vec<&str>>(), ["n-0"]);
    }

    #[test]
    fn only_drained_uncordoned_nodes_are_tainted() {
        let mut fleet = Fleet::new(&settings(&[]));
        let planned = serde_json::json!([{"key": "spillway/planned", "value": "e-1", "effect": "PreferNoSchedule"}]);
        for (name, labels, unschedulable) in [("n-1", &[][..], false), ("n-2", &[], true), ("n-3", KARPENTERS, false)] {
            let listed = serde_json::json!({"metadata": {"name": name, "labels": tags(labels)},
                "spec": {"providerID": "aws:///us-east-1a/i-0123456789abcdef0", "taints": planned, "unschedulable": unschedulable}});
            let ListedNode { metadata, spec } = serde_json::from_value(listed).unwrap();
            fleet.add(&metadata);
            fleet.add_if_planned(&metadata.name, &spec);
        }
        let tainted: Vec<_> = fleet.tainted.iter().map(|(node, instance)| (node.as_ref(), instance.as_str())).collect();
        assert_eq!(tainted, [("n-1", "i-0123456789abcdef0")]);
    }
}
