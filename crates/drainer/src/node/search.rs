//! Finding the node of an instance that EC2 does not describe: by the instance's id alone.

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::ListParams;
use spillway_core::instance::Instance;
use spillway_notice::InstanceId;

use super::find::in_pages;
use crate::kube::{ApiError, call, if_found};

/// The instance as its node names it, if the cluster has one: by the names that hold the id, then among the nodes of its zone.
/// Without a zone, among all nodes.
pub(crate) async fn search(
    nodes: &Api<Node>,
    id: &InstanceId,
    region: &str,
    zone: Option<&str>,
) -> Result<Option<Instance>, ApiError> {
    for name in names_with_id(id, region) {
        let node = if_found(call(nodes.get(&name)).await, "nodes")?;
        let provider_id = node.and_then(|node| node.spec?.provider_id);
        if let Some(instance) = provider_id.and_then(|provider_id| Instance::of_node(id, &name, &provider_id)) {
            return Ok(Some(instance));
        }
    }
    let label_selector = zone.map(|zone| format!("topology.kubernetes.io/zone={zone}"));
    let which = ListParams { label_selector, ..ListParams::default() };
    in_pages(nodes, which, |name, provider_id| Instance::of_node(id, name, provider_id)).await
}

/// The names with the instance's id that EKS gives nodes: the bare id, and with the domain of resource-based naming.
fn names_with_id(id: &InstanceId, region: &str) -> [String; 2] {
    let domain = if region == "us-east-1" { "ec2.internal".to_owned() } else { format!("{region}.compute.internal") };
    [id.to_string(), format!("{id}.{domain}")]
}
