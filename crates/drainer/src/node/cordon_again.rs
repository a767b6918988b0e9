//! Cordons a claimed node again after somebody uncordoned it during the drain. Core's `node/cordon_again.rs` makes the patch.

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use spillway_core::node::claimant::Claim;
use spillway_core::node::cordon_again::cordoning_again;
use spillway_startup::logs::chain;

use super::patch;

/// Cordons the node again if it was uncordoned. Returns `true` if the patch succeeded.
pub(crate) async fn cordon_again(nodes: &Api<Node>, node: &Node, claim: &Claim) -> bool {
    let Some(patch) = cordoning_again(node, claim) else { return false };
    let name = &claim.node;
    match patch::send(nodes, name, patch).await {
        Ok(Some(_)) => {
            tracing::warn!(node.name = name, "somebody uncordoned node {name} while it is drained; cordoned it again");
            true
        }
        Ok(None) => false,
        Err(error) => {
            let error = chain(&error);
            tracing::warn!(node.name = name, error, "cannot cordon node {name} again after somebody uncordoned it");
            false
        }
    }
}
