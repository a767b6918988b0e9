//! Taint out-of-service for nodes that are not Ready: Kubernetes releases the node's pods and volumes at once. Between `look`
//! and `declare` the caller checks in EC2 that the instance is down.

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
pub(crate) struct Looked {
    pub(crate) name: String,
    pub(crate) is_ready: bool,
    /// Boot id, new after each boot.
    pub(crate) boot: Option<String>,
    node: Node,
}

pub(crate) async fn look(nodes: &Api<Node>, instance: &Instance, claimant: &Claimant<'_>) -> Result<Looked, NodeError> {
    let node = find(nodes, instance).await?.ok_or(Unclaimed::NoNode)?;
    if let Some(why) = claimant.barred_from(&node) {
        return Err(why.into());
    }
    let (name, is_ready, boot) = (node.name_any(), ready(&node) == Ready::Yes, ObservedNode::of(&node).boot);
    Ok(Looked { name, is_ready, boot, node })
}

/// Taints the node, if it is unchanged since `look`.
pub(crate) async fn declare(nodes: &Api<Node>, looked: &Looked) -> Result<(), NodeError> {
    if let Some(patch) = tainting(&looked.node) {
        patch::send(nodes, &looked.name, patch).await?.ok_or(Unclaimed::NoNode)?;
    }
    Ok(())
}
