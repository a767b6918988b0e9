//! Whether a node's kubelet still answers: one look at the node.

use k8s_openapi::api::core::v1::Node;
use kube::{Api, Client};

use crate::kubernetes::{ApiError, call};

/// What a look at a node says of its kubelet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kubelet {
    /// It reports, or has been silent for no longer than the cluster puts up with.
    Answers,
    /// The cluster has given it up, or the node is no more: nobody will say that a pod has stopped.
    Silent,
}

/// Looks at the node.
pub(crate) async fn look(client: Client, node: String) -> Result<Kubelet, ApiError> {
    let nodes: Api<Node> = Api::all(client);
    Ok(kubelet_of(call(nodes.get_opt(&node)).await?.as_ref()))
}

/// The node controller sets every condition to `Unknown` when a kubelet has not reported for its
/// grace period (40 or 50 s). `False` is what a kubelet says itself, so it is there.
fn kubelet_of(node: Option<&Node>) -> Kubelet {
    let Some(node) = node else { return Kubelet::Silent };
    let mut conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let unknown = conditions.any(|is| is.type_ == "Ready" && is.status == "Unknown");
    if unknown { Kubelet::Silent } else { Kubelet::Answers }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use serde_json::json;

    use super::*;

    fn with(ready: &str) -> Kubelet {
        let node = json!({"metadata": {"name": "n"}, "status": {"conditions": [
            {"type": "DiskPressure", "status": "Unknown"}, {"type": "Ready", "status": ready}]}});
        kubelet_of(Some(&serde_json::from_value(node).unwrap()))
    }

    #[test]
    fn a_kubelet_is_silent_when_the_cluster_has_given_it_up_or_its_node_is_gone() {
        assert_eq!(with("Unknown"), Kubelet::Silent);
        assert_eq!(kubelet_of(None), Kubelet::Silent);
    }

    #[test]
    fn a_kubelet_that_says_that_it_is_not_ready_is_not_silent() {
        assert_eq!(with("True"), Kubelet::Answers);
        assert_eq!(with("False"), Kubelet::Answers);
    }
}
