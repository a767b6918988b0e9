//! Reads claims to limit concurrent drains for planned maintenance. Core's `node/pace.rs` makes the decisions.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use spillway_core::drain::kubelet::ZONE_LABEL;
use spillway_core::instance::Instance;
use spillway_core::node::claimant::{Claim, Claimant};
use spillway_core::node::pace::{self, Claims};

use super::find::{each_in_pages, find};
use super::patch;
use crate::kube::{ApiError, call, if_found, until_settled};

/// Maximum number of attempts at a patch. An attempt fails if the node changes between the read and the patch.
const ATTEMPTS: u32 = 5;
/// Field selector of cordoned nodes. Claims have no field selector, but a claimed node is cordoned.
const CORDONED: &str = "spec.unschedulable=true";

/// Reads the claims of the nodes in the zone that `labels` name. If `labels` name no zone, reads the claims of all nodes.
pub(crate) async fn claims_beside(
    nodes: &Api<Node>,
    labels: &BTreeMap<String, String>,
    now: Timestamp,
) -> Result<Claims, ApiError> {
    let zone = labels.get(ZONE_LABEL).map(|zone| format!("{ZONE_LABEL}={zone}"));
    let which = ListParams::default().fields(CORDONED).labels(zone.as_deref().unwrap_or_default());
    let mut claims = Claims::default();
    let see = |node: Node| {
        claims.add(&node, now);
        ControlFlow::Continue(())
    };
    // Boxed: rustc limits the depth of nested futures.
    Box::pin(each_in_pages(nodes, which, see)).await?;
    Ok(claims)
}

pub(crate) async fn set_over(nodes: &Api<Node>, claim: &Claim, event: &str) -> Result<(), ApiError> {
    until_settled(ATTEMPTS, async || {
        let node = if_found(call(nodes.get(&claim.node)).await, "nodes")?;
        if let Some(patch) = node.filter(|node| claim.is_of(node)).and_then(|node| pace::over(&node, event)) {
            patch::send(nodes, &claim.node, patch).await?;
        }
        Ok(())
    })
    .await
}

pub(crate) async fn taint(nodes: &Api<Node>, instance: &Instance, claimant: &Claimant<'_>) -> Result<(), ApiError> {
    until_settled(ATTEMPTS, async || {
        let node = find(nodes, instance).await?.filter(|node| claimant.barred_from(node).is_none());
        if let Some(node) = node
            && let Some(patch) = pace::tainting(&node, &claimant.annotation.event)
        {
            patch::send(nodes, &node.name_any(), patch).await?;
        }
        Ok(())
    })
    .await
}
