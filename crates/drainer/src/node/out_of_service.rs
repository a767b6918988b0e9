//! Taints a node as out of service, so that Kubernetes releases the node's pods and volumes at once. Between [`read_node`] and
//! [`declare`], the caller checks in EC2 that the instance is down.

use k8s_openapi::api::core::v1::Node;
use kube::{Api, ResourceExt as _};
use spillway_core::instance::Instance;
use spillway_core::node::claimant::Claimant;
use spillway_core::node::observed::ObservedNode;
use spillway_core::node::out_of_service::tainting;
use spillway_core::node::readiness::{Ready, ready};
use spillway_core::node::unclaimed::Unclaimed;

use super::find::find;
use super::{NodeError, patch};

#[derive(Debug)]
pub(crate) struct NodeSnapshot {
    pub(crate) name: String,
    pub(crate) is_ready: bool,
    /// Boot id of the node, which changes with each boot.
    pub(crate) boot: Option<String>,
    node: Node,
}

pub(crate) async fn read_node(
    nodes: &Api<Node>,
    instance: &Instance,
    claimant: &Claimant<'_>,
) -> Result<NodeSnapshot, NodeError> {
    let node = find(nodes, instance).await?.ok_or(Unclaimed::NoNode)?;
    if let Some(why) = claimant.barred_from(&node) {
        return Err(why.into());
    }
    let (name, is_ready, boot) = (node.name_any(), ready(&node) == Ready::Yes, ObservedNode::of(&node).boot);
    Ok(NodeSnapshot { name, is_ready, boot, node })
}

/// Taints the node if the node has not changed since [`read_node`].
pub(crate) async fn declare(nodes: &Api<Node>, snapshot: &NodeSnapshot) -> Result<(), NodeError> {
    if let Some(patch) = tainting(&snapshot.node) {
        patch::send(nodes, &snapshot.name, patch).await?.ok_or(Unclaimed::NoNode)?;
    }
    Ok(())
}
