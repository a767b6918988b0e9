//! Node labels that opt a node out or name its owner. Pure.

use std::collections::BTreeMap;

use kube_core::{Selector, SelectorExt as _};

use super::unclaimed::Unclaimed;
use crate::instance::ManagedBy;

/// Label that makes Spillway ignore a node. The label may have any value.
pub const IGNORE: &str = "spillway/ignore";
/// Label that excludes the node from load balancers.
pub const EXCLUDED: &str = "node.kubernetes.io/exclude-from-external-load-balancers";
/// Value of [`EXCLUDED`] that Spillway sets.
pub const EXCLUDED_BY_US: &str = "spillway";

const COMPUTE_TYPE: &str = "eks.amazonaws.com/compute-type";
const NODE_GROUP: &str = "eks.amazonaws.com/nodegroup";
pub const NODE_POOL: &str = "karpenter.sh/nodepool";

pub const OWNER_LABELS: [&str; 3] = [COMPUTE_TYPE, NODE_GROUP, NODE_POOL];

/// Returns the reason not to claim a node, if the node has the opt-out label or does not match the node selector.
pub fn left_alone(labels: &BTreeMap<String, String>, name: &str, selector: &Selector) -> Option<Unclaimed> {
    if labels.contains_key(IGNORE) {
        return Some(Unclaimed::OptedOut(name.to_owned()));
    }
    (!selector.matches(labels)).then(|| Unclaimed::NotSelected(name.to_owned()))
}

/// Returns the node owner that the labels name; `None` if no label names an owner.
pub fn managed_by(labels: &BTreeMap<String, String>) -> Option<ManagedBy> {
    match labels.get(COMPUTE_TYPE).map(String::as_str) {
        Some("fargate") => Some(ManagedBy::Fargate),
        Some("hybrid") => Some(ManagedBy::Hybrid),
        // Nodes of Auto Mode have Karpenter's label too.
        Some("auto") => Some(ManagedBy::AutoMode),
        _ if labels.contains_key(NODE_GROUP) => Some(ManagedBy::ManagedNodeGroup),
        _ if labels.contains_key(NODE_POOL) => Some(ManagedBy::Karpenter),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support;

    #[test]
    fn each_owner_is_recognized_by_its_label() {
        let compute_type = |value| ("eks.amazonaws.com/compute-type", value);
        for (pairs, owner) in [
            (&[("eks.amazonaws.com/nodegroup", "blue")][..], Some(ManagedBy::ManagedNodeGroup)),
            (&[("karpenter.sh/nodepool", "default")], Some(ManagedBy::Karpenter)),
            (&[compute_type("auto"), ("karpenter.sh/nodepool", "general-purpose")], Some(ManagedBy::AutoMode)),
            (&[compute_type("fargate")], Some(ManagedBy::Fargate)),
            (&[compute_type("hybrid")], Some(ManagedBy::Hybrid)),
            (&[compute_type("ec2")], None),
            (&[("kubernetes.io/os", "linux")], None),
        ] {
            assert_eq!(managed_by(&test_support::tags(pairs)), owner, "{pairs:?}");
        }
    }
}
