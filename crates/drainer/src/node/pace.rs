//! The pace of drains that can wait: the nodes beside a claimed one, and what others are told of its drain. What follows is decided in
//! core's `node/pace.rs`.

use std::ops::ControlFlow;

use k8s_openapi::api::core::v1::Node;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use spillway_core::drain::kubelet::ZONE_LABEL;
use spillway_core::node::claimant::Claim;
use spillway_core::node::observed::ObservedNode;
use spillway_core::node::pace::{self, Zone};
use spillway_core::node::readiness::{Ready, ready};

use super::find::each_in_pages;
use super::patch;
use crate::kube::{ApiError, call, if_found, until_settled};

/// How often the claim is written again when the node changes between looking and patching.
const ATTEMPTS: u32 = 5;

/// The nodes of the claimed node's zone; of a node without one, all.
pub(crate) async fn zone_of(nodes: &Api<Node>, claim: &Claim) -> Result<Zone, ApiError> {
    let zone = claim.labels.get(ZONE_LABEL).map(|zone| format!("{ZONE_LABEL}={zone}"));
    let which = ListParams::default().labels(zone.as_deref().unwrap_or_default());
    let mut zone = Zone::default();
    let see = |node: Node| {
        zone.add(&node.name_any(), ready(&node) == Ready::Yes, ObservedNode::of(&node).claim());
        ControlFlow::Continue(())
    };
    each_in_pages(nodes, which, see).await?;
    Ok(zone)
}

/// Says in the claim of that event that its drain is over.
pub(crate) async fn tell_over(nodes: &Api<Node>, claim: &Claim, event: &str) -> Result<(), ApiError> {
    until_settled(ATTEMPTS, async || {
        let node = if_found(call(nodes.get(&claim.node)).await, "nodes")?;
        if let Some(patch) = node.filter(|node| claim.is_of(node)).and_then(|node| pace::over(&node, event)) {
            patch::send(nodes, &claim.node, patch).await?;
        }
        Ok(())
    })
    .await
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::test_support::api_server::{NODE_PATH, claimed, status};
    use crate::test_support::context::{TestContext, claim, client};
    use crate::test_support::script::call;

    #[tokio::test(start_paused = true)]
    async fn a_node_that_changes_each_time_is_told_five_times_in_vain() {
        let mut node = claimed("terminate lifecycle action", "e-1", "r-1");
        let pace = json!({"group": null, "claimed": "1970-01-01T00:00:00Z"});
        let annotation = json!({"event": "e-1", "request": "r-1", "notice": "n", "cordoned": true, "pace": pace});
        node["metadata"]["annotations"]["spillway/claim"] = json!(annotation.to_string());
        let look = || call(format!("GET {NODE_PATH}")).says(200, &node);
        let changed = || call(format!("PATCH {NODE_PATH}")).with("over").says(422, status(422, "Invalid", "nodes"));
        let context = TestContext::new(&[], (0..5).flat_map(|_| [look(), changed()]), []);
        let told = tell_over(&Api::all(client(&context).await), &claim("e-1"), "e-1").await;
        assert!(matches!(told, Err(ApiError::Contended(_))), "{told:?}");
    }
}
