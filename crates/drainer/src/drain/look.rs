//! Whether the node by the claimed one's name is still the claimed one: pods name their node and nothing else.

use k8s_openapi::api::core::v1::Node;
use kube::{Api, Client};
use spillway_core::node::claimant::Claim;
use tokio::time::Instant;

use crate::kube::{call, until};
use crate::node::cordon_again;

/// What a look has said.
pub(super) enum Looked {
    /// Another instance's node has the claimed one's name.
    Anothers,
    /// It is the claimed one.
    Claimed { cordoned_again: bool },
}

/// Looks at the node. If the API server refuses to say whose it is, it is the claimed one.
pub(super) fn look(client: &Client, claim: &Claim, end: Instant) -> impl Future<Output = Looked> + use<> {
    let (nodes, claim) = (Api::<Node>::all(client.clone()), claim.clone());
    async move {
        let node = until(end, async || call(nodes.get_opt(&claim.node)).await, |_| ()).await.ok().flatten();
        let Some(node) = node else { return Looked::Claimed { cordoned_again: false } };
        if claim.is_of(&node) {
            return Looked::Claimed { cordoned_again: cordon_again(&nodes, &node, &claim).await };
        }
        let node = &claim.node;
        tracing::warn!(node.name = node, "another instance's node is called {node} by now: its pods are left alone");
        Looked::Anothers
    }
}
