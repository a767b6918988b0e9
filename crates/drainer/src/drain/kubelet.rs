//! Whether a node's kubelet still answers: a watch of the node.

use k8s_openapi::api::core::v1::Node;
use kube::{Api, Client};

use crate::node::readiness::{Ready, ready};
use crate::node::{Claim, NodeWatch, ObservedNodeChange};

/// What a node says of its kubelet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kubelet {
    /// It reports, or has been silent for no longer than the cluster puts up with.
    Answers,
    /// The cluster has given it up, or the node is no more: nobody will say that a pod has stopped.
    Silent,
}

/// A watch of a node's kubelet.
#[derive(Debug)]
pub(crate) struct KubeletWatch {
    watch: NodeWatch,
    claim: Claim,
}

impl KubeletWatch {
    /// Watches that of the claimed node.
    pub(crate) fn of(client: &Client, claim: &Claim) -> Self {
        Self { watch: NodeWatch::of(Api::all(client.clone()), &claim.node), claim: claim.clone() }
    }

    /// What the node says, at first, and then after each change. One that cannot be watched is given the benefit of the
    /// doubt. Can be cancelled without losing a change.
    pub(crate) async fn next(&mut self) -> Kubelet {
        match self.watch.next_change().await {
            // The claimed one is no more.
            ObservedNodeChange::Is(node) if !self.claim.is_of(&node) => Kubelet::Silent,
            ObservedNodeChange::Is(node) => kubelet_of(&node),
            ObservedNodeChange::NotThere => Kubelet::Silent,
            ObservedNodeChange::NotSeen => Kubelet::Answers,
        }
    }
}

/// A kubelet that says itself that it is not Ready is there.
fn kubelet_of(node: &Node) -> Kubelet {
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
