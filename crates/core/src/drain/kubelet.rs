//! Decides from node conditions whether a node's kubelet answers, is silent, or counts as dead.

use std::time::Duration;

use k8s_openapi::api::core::v1::Node;

use crate::node::readiness::{Ready, ready};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kubelet {
    /// The node's condition `Ready` is not `Unknown`.
    Answers,
    /// The node's condition `Ready` is `Unknown`, or the node is deleted. The kubelet does not report when pods stop.
    Silent,
    /// The kubelet has been silent for [`DEAD_AFTER`], and the node's zone is not disconnected. The node's pods count as stopped.
    Dead,
}

/// Time from [`Kubelet::Silent`] to [`Kubelet::Dead`]. A kubelet that was only disconnected may reconnect in this time.
pub const DEAD_AFTER: Duration = Duration::from_mins(1);

pub const ZONE_LABEL: &str = "topology.kubernetes.io/zone";

/// Number of nodes in the drained node's zone, and number of those nodes with a silent kubelet.
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

    /// Returns `true` if the zone has several nodes and more than half of the kubelets are silent. The zone may be
    /// disconnected while its pods run.
    pub fn are_in_doubt(self) -> bool {
        self.all > 1 && 2 * self.silent > self.all
    }
}

/// Reads the node's condition `Ready`. A kubelet that reports `False` counts as answering.
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
