//! What `bench`, `load` and `peers` share.
//!
//! # Layout
//! * this file: the world in which drains are measured, and whose pods they are;
//! * `baseline`: the evictions alone, by a program that does nothing else;
//! * `circumstances`: command, commit, day and machine of a measurement; `machine` reads the last;
//! * `statistics`, `requirement`: what follows from what was measured (pure);
//! * `report`: the raw results and the page that is rendered from them;
//! * `micros`: how a duration stands in raw results.

pub(crate) mod baseline;
pub(crate) mod build;
pub(crate) mod circumstances;
pub(crate) mod machine;
pub(crate) mod micros;

pub(crate) mod report;
pub(crate) mod requirement;
pub(crate) mod statistics;

use std::path::{Path, PathBuf};
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::{Api, Client};
use serde_json::{Value, json};
use spillway_bed::{BedError, WorldOptions};

/// How long EKS's API server believes a token that it has checked.
const TOKEN_CACHE: Duration = Duration::from_mins(2);

/// A world where drains are measured. Filling nodes makes garbage, and the API server collected it for a fifth of the time,
/// 300 to 1,300 ms at a stretch on two cores, so that two drains in five met it: which ones was chance. With 500 it collects
/// a fifth as often, and has grown to 3 GB after four hundred full nodes.
///
/// What answers a drain goes before what hears of it. In a cluster kubelets have machines of their own, which the
/// controllers and the scheduler need not have. Here the three took a quarter of the processors' time while a full node was
/// evicted, from an API server that had nothing left.
pub(crate) fn world_options() -> WorldOptions {
    WorldOptions { gogc: 500, controllers_nice: 10, ..plain_world_options() }
}

/// A world as it is by default: nothing stands back, garbage is collected as Go does it, and Spillway has no priority level
/// of its own.
pub(crate) fn plain_world_options() -> WorldOptions {
    WorldOptions { token_cache: TOKEN_CACHE, flow_control: false, ..WorldOptions::default() }
}

/// Pods mostly belong to a controller. So a node's pods all have one, here one that puts none back: the node itself.
pub(crate) async fn of_one_owner(client: &Client, node: &str) -> Result<Value, BedError> {
    let getting = BedError::kubernetes(format!("get node {node}"));
    let uid = Api::<Node>::all(client.clone()).get(node).await.map_err(getting)?.metadata.uid;
    let owner = json!({"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid, "controller": true});
    Ok(json!({"metadata": {"ownerReferences": [owner]}}))
}

/// A file of this crate: it runs where it was built.
pub(crate) fn own_file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}
