//! State of a node's kubelet, from the conditions of the node and of its zone's nodes.

use std::time::Duration;

use k8s_openapi::api::core::v1::Node;

use crate::node::readiness::{Ready, ready};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kubelet {
    /// The kubelet reports, or has been silent for less than the cluster's grace period.
    Answers,
    /// The kubelet has been silent for longer than the cluster's grace period, or the node is deleted. No pod's end will be
    /// reported.
    Silent,
    /// The kubelet has been silent for another [`DEAD_AFTER`], while most nodes of its zone report. The pods do not run, so their
    /// blockers protect nothing.
    Dead,
}

/// Time from [`Kubelet::Silent`] to [`Kubelet::Dead`]. A kubelet that was only cut off may come back in this time.
pub const DEAD_AFTER: Duration = Duration::from_mins(1);

pub const ZONE_LABEL: &str = "topology.kubernetes.io/zone";

/// Number of nodes in the drained node's zone, and number of silent nodes among them.
#[derive(Debug, Clone, Copy, Default)]
pub struct ZoneNodes {
    all: usize,
    silent: usize,
}

impl ZoneNodes {
    pub fn count(&mut self, node: &Node) {
        self.all += 1;
        self.silent += usize::from(kubelet_of(node) == Kubelet::Silent);
    }

    /// Returns `true` if the zone has several nodes and more than half of them are silent. The control plane may be cut off from
    /// the zone, and the pods may still run.
    pub fn are_in_doubt(self) -> bool {
        self.all > 1 && 2 * self.silent > self.all
    }
}

/// State of the kubelet, from the node's condition `Ready`. A kubelet that reports not Ready does answer.
pub fn kubelet_of(node: &Node) -> Kubelet {
    if matches!(ready(node), Ready::Unknown(_)) { Kubelet::Silent } else { Kubelet::Answers }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn node(ready: &str) -> Node {
        let node = json!({"metadata": {"name": "n"}, "status": {"conditions": [
            {"type": "DiskPressure", "status": "Unknown"}, {"type": "Ready", "status": ready}]}});
        serde_json::from_value(node).unwrap()
    }

    #[test]
    fn kubelet_is_silent_if_ready_is_unknown() {
        for (ready, kubelet) in [("Unknown", Kubelet::Silent), ("True", Kubelet::Answers), ("False", Kubelet::Answers)]
        {
            assert_eq!(kubelet_of(&node(ready)), kubelet, "{ready}");
        }
    }

    #[test]
    fn zone_with_mostly_silent_nodes_is_in_doubt() {
        for (silent, ready, in_doubt) in
            [(1, 0, false), (1, 1, false), (2, 1, true), (2, 2, false), (0, 0, false), (3, 0, true)]
        {
            let mut zone = ZoneNodes::default();
            (0..silent).for_each(|_| zone.count(&node("Unknown")));
            (0..ready).for_each(|_| zone.count(&node("True")));
            assert_eq!(zone.are_in_doubt(), in_doubt, "{zone:?}");
        }
    }
}
