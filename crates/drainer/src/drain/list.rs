//! The node's pods, as the API server lists them.

use std::time::Duration;

use kube::{Api, Client};
use spillway_core::drain::deadline::Window;
use spillway_core::kube::pod::Pod;
use spillway_startup::logs::chain;
use tokio::time::Instant;

use super::look::{Looked, look};
use crate::kube::watch::{Listed, Selection};
use crate::kube::{ApiError, until};
use crate::node::ClaimedNode;

/// This soon after the claim, no other instance can have the node's name: it would have to boot first.
const NAME_IS_KEPT: Duration = Duration::from_secs(5);

/// The pods of a node, to be listed or watched.
pub(super) fn pods_of(client: &Client, node: &str) -> Selection<Pod> {
    Selection { api: Api::all(client.clone()), field_selector: Some(format!("spec.nodeName={node}")) }
}

/// Lists the node's pods. Tried until the window ends: without them there is no drain.
pub(super) async fn list(client: &Client, node: &str, window: Window) -> Result<Listed<Pod>, ApiError> {
    let pods = pods_of(client, node);
    let log = |error: &ApiError| {
        tracing::warn!(node.name = node, error = chain(&error), "cannot list the node's pods; trying again");
    };
    until(window.end, async || pods.list().await, log).await
}

/// Lists the pods of a node whose claim began then. If the list comes late, and another instance's node has the name by now,
/// there are none.
pub(crate) async fn list_claimed(
    ClaimedNode { claim, client }: &ClaimedNode,
    claim_began: Instant,
    window: Window,
) -> Result<Listed<Pod>, ApiError> {
    let mut listed = list(client, &claim.node, window).await?;
    let is_late = claim_began.elapsed() > NAME_IS_KEPT;
    if is_late && matches!(Box::pin(look(client, claim, window.end)).await, Looked::Anothers) {
        listed.items.clear();
    }
    Ok(listed)
}
