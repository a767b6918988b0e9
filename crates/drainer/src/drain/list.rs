//! The node's pods, as the API server lists them.

use kube::{Api, Client};
use spillway_core::drain::deadline::Window;
use spillway_core::kube::pod::Pod;
use spillway_startup::logs::chain;

use crate::kube::watch::{Listed, Selection};
use crate::kube::{ApiError, until};

/// The pods of a node, to be listed or watched.
pub(super) fn pods_of(client: &Client, node: &str) -> Selection<Pod> {
    Selection { api: Api::all(client.clone()), field_selector: Some(format!("spec.nodeName={node}")) }
}

/// Lists the node's pods. Tried until the window ends: without them there is no drain.
pub(crate) async fn list(client: &Client, node: &str, window: Window) -> Result<Listed<Pod>, ApiError> {
    let pods = pods_of(client, node);
    let log = |error: &ApiError| {
        tracing::warn!(node.name = node, error = chain(&error), "cannot list the node's pods; trying again");
    };
    until(window.end, async || pods.list().await, log).await
}
