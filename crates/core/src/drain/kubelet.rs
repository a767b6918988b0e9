//! Whether a node's kubelet still answers, by what the node says; and whether to believe it.

use std::time::Duration;

use k8s_openapi::api::core::v1::Node;

use crate::node::readiness::{Ready, ready};

/// What a node says of its kubelet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kubelet {
    /// It reports, or has been silent for no longer than the cluster puts up with.
    Answers,
    /// The cluster has given it up, or the node is no more: nobody will say that a pod has stopped.
    Silent,
    /// It has been silent for [`DEAD_AFTER`] more, and the control plane's view of its zone is not in doubt. What blocks its pods
    /// protects nothing, because they do not run.
    Dead,
}

/// How long a node is silent before it counts as dead: a kubelet that was only cut off may come back.
pub const DEAD_AFTER: Duration = Duration::from_mins(1);

/// The label of a node that names its zone.
pub const ZONE_LABEL: &str = "topology.kubernetes.io/zone";

/// The nodes of a zone, ours among them.
#[derive(Debug, Clone, Copy, Default)]
pub struct ZoneNodes {
    all: usize,
    silent: usize,
}

impl ZoneNodes {
    /// Counts a node of the zone.
    pub fn count(&mut self, node: &Node) {
        self.all += 1;
        self.silent += usize::from(kubelet_of(node) == Kubelet::Silent);
    }

    /// Whether more than half of the nodes are silent. The control plane may then be cut off from a zone whose pods still run. A
    /// single node is no evidence for that.
    pub fn are_in_doubt(self) -> bool {
        self.all > 1 && 2 * self.silent > self.all
    }
}

/// A kubelet that says itself that it is not Ready is there.
pub fn kubelet_of(node: &Node) -> Kubelet {
    if matches!(ready(node), Ready::Unknown(_)) { Kubelet::Silent } else { Kubelet::Answers }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn with(ready: &str) -> Kubelet {
        kubelet_of(&node(ready))
    }

    fn node(ready: &str) -> Node {
        let node = json!({"metadata": {"name": "n"}, "status": {"conditions": [
            {"type": "DiskPressure", "status": "Unknown"}, {"type": "Ready", "status": ready}]}});
        serde_json::from_value(node).unwrap()
    }

    #[test]
    fn a_kubelet_is_silent_when_the_cluster_has_given_it_up() {
        assert_eq!(with("Unknown"), Kubelet::Silent);
    }

    #[test]
    fn a_zone_most_of_whose_nodes_are_silent_is_in_doubt() {
        for (silent, ready, in_doubt) in
            [(1, 0, false), (1, 1, false), (2, 1, true), (2, 2, false), (0, 0, false), (3, 0, true)]
        {
            let mut zone = ZoneNodes::default();
            (0..silent).for_each(|_| zone.count(&node("Unknown")));
            (0..ready).for_each(|_| zone.count(&node("True")));
            assert_eq!(zone.are_in_doubt(), in_doubt, "{zone:?}");
        }
    }

    #[test]
    fn a_kubelet_that_says_that_it_is_not_ready_is_not_silent() {
        assert_eq!(with("True"), Kubelet::Answers);
        assert_eq!(with("False"), Kubelet::Answers);
    }
}
