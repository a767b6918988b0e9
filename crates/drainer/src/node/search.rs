//! Finds a node by the instance id alone, if EC2 does not describe the instance.

use std::ops::ControlFlow;

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::storage::v1::CSINode;
use kube::api::ListParams;
use kube::{Api, Client};
use spillway_core::instance::Instance;
use spillway_notice::InstanceId;
use spillway_startup::logs::chain;

use super::find::{each_in_pages, in_pages};
use crate::kube::{ApiError, call, if_found};

/// Maximum number of `CSINode` objects per page of a list.
const PAGE_OF_CSI_NODES: u32 = 500;

/// Finds an instance through its node: by the node's usual names, then by `CSINode` objects, then among the nodes of `zone`. If
/// `zone` is `None`, searches the nodes of all zones.
pub(crate) async fn search(
    client: &Client,
    id: &InstanceId,
    region: &str,
    zone: Option<&str>,
) -> Result<Option<Instance>, ApiError> {
    let nodes = &Api::<Node>::all(client.clone());
    for name in names_with_id(id, region) {
        if let Some(instance) = at_node(nodes, id, &name).await? {
            return Ok(Some(instance));
        }
    }
    match by_csi_node(client, id).await {
        Ok(Some(name)) => {
            if let Some(instance) = at_node(nodes, id, &name).await? {
                return Ok(Some(instance));
            }
        }
        Ok(None) => {}
        Err(error) => {
            let to_do = if error.code() == Some(403) { " (apply deploy/rbac.yaml)" } else { "" };
            tracing::warn!(
                error = chain(&error),
                "cannot list CSINodes{to_do}; searching instance {id} among the nodes"
            );
        }
    }
    let label_selector = zone.map(|zone| format!("topology.kubernetes.io/zone={zone}"));
    let which = ListParams { label_selector, ..ListParams::default() };
    in_pages(nodes, which, |name, provider_id| Instance::of_node(id, name, provider_id)).await
}

/// Reads a node by its name. Returns the instance if the node belongs to the instance with this id.
async fn at_node(nodes: &Api<Node>, id: &InstanceId, name: &str) -> Result<Option<Instance>, ApiError> {
    let node = if_found(call(nodes.get(name)).await, "nodes")?;
    let provider_id = node.and_then(|node| node.spec?.provider_id);
    Ok(provider_id.and_then(|provider_id| Instance::of_node(id, name, &provider_id)))
}

/// Finds the node's name through its `CSINode` object. The CSI drivers of EBS, EFS and `FSx` use the instance id as the node id.
async fn by_csi_node(client: &Client, id: &InstanceId) -> Result<Option<String>, ApiError> {
    let mut found = None;
    let see = |node: CSINode| {
        if node.spec.drivers.iter().any(|driver| driver.node_id == id.as_str()) {
            found = node.metadata.name;
        }
        if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let which = ListParams::default().limit(PAGE_OF_CSI_NODES);
    Box::pin(each_in_pages(&Api::<CSINode>::all(client.clone()), which, see)).await?;
    Ok(found)
}

/// Returns the usual node names that start with the instance id: the id alone, and the resource-based DNS name.
fn names_with_id(id: &InstanceId, region: &str) -> [String; 2] {
    let domain = if region == "us-east-1" { "ec2.internal".to_owned() } else { format!("{region}.compute.internal") };
    [id.to_string(), format!("{id}.{domain}")]
}
