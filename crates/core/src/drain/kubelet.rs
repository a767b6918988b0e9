//! Whether a node's kubelet still answers, by what the node says.

use k8s_openapi::api::core::v1::Node;

use crate::node::readiness::{Ready, ready};

/// What a node says of its kubelet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kubelet {
    /// It reports, or has been silent for no longer than the cluster puts up with.
    Answers,
    /// The cluster has given it up, or the node is no more: nobody will say that a pod has stopped.
    Silent,
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
        let node = json!({"metadata": {"name": "n"}, "status": {"conditions": [
            {"type": "DiskPressure", "status": "Unknown"}, {"type": "Ready", "status": ready}]}});
        kubelet_of(&serde_json::from_value(node).unwrap())
    }

    #[test]
    fn a_kubelet_is_silent_when_the_cluster_has_given_it_up() {
        assert_eq!(with("Unknown"), Kubelet::Silent);
    }

    #[test]
    fn a_kubelet_that_says_that_it_is_not_ready_is_not_silent() {
        assert_eq!(with("True"), Kubelet::Answers);
        assert_eq!(with("False"), Kubelet::Answers);
    }
}
