//! Sends JSON patches of nodes.

use json_patch::Patch;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::PatchParams;
use spillway_core::kube::status::is_of_admission;
use spillway_core::node::patch::FIELD_MANAGER;

use crate::kube::{ApiError, call, if_found};

/// Patches a node and returns its metadata, or `None` if the node does not exist. If a `test` operation of the patch fails,
/// returns [`ApiError::Contended`].
pub(super) async fn send(nodes: &Api<Node>, name: &str, patch: Patch) -> Result<Option<ObjectMeta>, ApiError> {
    send_with(nodes, name, patch, PatchParams::default()).await
}

pub(super) async fn send_dry(nodes: &Api<Node>, name: &str, patch: Patch) -> Result<Option<ObjectMeta>, ApiError> {
    send_with(nodes, name, patch, PatchParams { dry_run: true, ..PatchParams::default() }).await
}

async fn send_with(
    nodes: &Api<Node>,
    name: &str,
    patch: Patch,
    params: PatchParams,
) -> Result<Option<ObjectMeta>, ApiError> {
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..params };
    let sent = call(nodes.patch_metadata(name, &params, &kube::api::Patch::Json::<()>(patch))).await;
    match if_found(sent, "nodes") {
        Ok(node) => Ok(node.map(|node| node.metadata)),
        Err(ApiError::Refused(status)) if status.code == 422 && !is_of_admission(&status) => {
            Err(ApiError::Contended(status))
        }
        Err(error) => Err(error),
    }
}
