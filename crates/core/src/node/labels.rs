//! What a node's labels say: that it is to be left alone, and whose it is. Pure.

use std::collections::BTreeMap;

use kube_core::{Selector, SelectorExt as _};

use super::unclaimed::Unclaimed;
use crate::instance::ManagedBy;

/// Opts a node out, whatever its value.
pub const IGNORE: &str = "spillway/ignore";
/// Keeps load balancers from sending to the node; ours has our name for a value.
pub const EXCLUDED: &str = "node.kubernetes.io/exclude-from-external-load-balancers";
/// The value of [`EXCLUDED`] that says it is ours.
pub const EXCLUDED_BY_US: &str = "spillway";

const COMPUTE_TYPE: &str = "eks.amazonaws.com/compute-type";
const NODE_GROUP: &str = "eks.amazonaws.com/nodegroup";
pub const NODE_POOL: &str = "karpenter.sh/nodepool";

pub const OF_OWNERS: [&str; 3] = [COMPUTE_TYPE, NODE_GROUP, NODE_POOL];

/// Why a node with these labels is not to be touched, whoever owns it.
pub fn left_alone(labels: &BTreeMap<String, String>, name: &str, selector: &Selector) -> Option<Unclaimed> {
    if labels.contains_key(IGNORE) {
        return Some(Unclaimed::OptedOut(name.to_owned()));
    }
    (!selector.matches(labels)).then(|| Unclaimed::NotSelected(name.to_owned()))
}

/// The owner that the labels name. Auto Mode's nodes have Karpenter's label too.
pub fn managed_by(labels: &BTreeMap<String, String>) -> Option<ManagedBy> {
    match labels.get(COMPUTE_TYPE).map(String::as_str) {
        Some("fargate") => Some(ManagedBy::Fargate),
        Some("hybrid") => Some(ManagedBy::Hybrid),
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
    fn a_node_is_opted_out_by_its_label_whatever_the_value() {
        for value in ["", "true", "false"] {
            let left_alone = left_alone(&test_support::tags(&[(IGNORE, value)]), "n-1", &Selector::default());
            assert_eq!(left_alone, Some(Unclaimed::OptedOut("n-1".to_owned())), "{value}");
        }
    }

    #[test]
    fn each_owner_is_known_by_its_label() {
        let named = |pairs: &[(&str, &str)]| {
            managed_by(&pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect())
        };
        assert_eq!(named(&[("eks.amazonaws.com/nodegroup", "blue")]), Some(ManagedBy::ManagedNodeGroup));
        assert_eq!(named(&[("karpenter.sh/nodepool", "default")]), Some(ManagedBy::Karpenter));
        let auto = [("eks.amazonaws.com/compute-type", "auto"), ("karpenter.sh/nodepool", "general-purpose")];
        assert_eq!(named(&auto), Some(ManagedBy::AutoMode));
        assert_eq!(named(&[("eks.amazonaws.com/compute-type", "fargate")]), Some(ManagedBy::Fargate));
        assert_eq!(named(&[("eks.amazonaws.com/compute-type", "hybrid")]), Some(ManagedBy::Hybrid));
        assert_eq!(named(&[("eks.amazonaws.com/compute-type", "ec2")]), None);
        assert_eq!(named(&[("kubernetes.io/os", "linux")]), None);
    }
}
