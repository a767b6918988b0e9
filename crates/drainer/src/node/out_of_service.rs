//! Declaring a node out of service, so that Kubernetes frees its pods and volumes at once. It is for a node that is
//! not Ready; whether its instance is down, which no node can tell, has been asked of EC2.

use k8s_openapi::api::core::v1::Node;
use kube::{Api, ResourceExt as _};
use spillway_core::instance::Instance;
use spillway_core::node::claimant::{Claimant, Unclaimed};
use spillway_core::node::out_of_service::tainting;
use spillway_core::node::readiness::{Ready, ready};

use super::find::find;
use super::{NodeError, patch};
use crate::kube::until_settled;

/// How often it is tried again when the node changes between looking and patching.
const ATTEMPTS: u32 = 5;

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Declared {
    /// It has the taint.
    OutOfService(String),
    /// It is Ready; nothing was changed.
    Ready(String),
}

/// Taints the instance's node.
pub(crate) async fn declare(
    nodes: &Api<Node>,
    instance: &Instance,
    claimant: &Claimant<'_>,
) -> Result<Declared, NodeError> {
    until_settled(ATTEMPTS, async || {
        let node = find(nodes, instance).await?.ok_or(Unclaimed::NoNode)?;
        if let Some(why) = claimant.barred_from(&node) {
            return Err(why.into());
        }
        let name = node.name_any();
        if ready(&node) == Ready::Yes {
            return Ok(Declared::Ready(name));
        }
        if let Some(patch) = tainting(&node) {
            patch::send(nodes, &name, patch).await?.ok_or(Unclaimed::NoNode)?;
        }
        Ok(Declared::OutOfService(name))
    })
    .await
}
