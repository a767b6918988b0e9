//! A node's kubelet, played by kwok: silent while its instance is stopped, and back with another boot id after a boot.

use k8s_openapi::api::core::v1::{Node, NodeSystemInfo, Pod};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};

use crate::error::BedError;
use crate::lambda::random_uuid;
use crate::pods;

/// Annotation of the nodes that kwok plays. kwok ignores a later annotation.
const PLAYED: &str = "kwok.x-k8s.io/node";
/// Annotations in `kwok.yaml` that keep a node from Ready, and a pod from its end.
const SILENT: &str = "spillway.test/silent";
const LOST: &str = "spillway.test/lost";

/// State of a new node's kubelet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kubelet {
    Ready,
    Silent,
}

/// Has kwok play the kubelet of a node that is about to be created.
pub(crate) fn play(node: &mut Node, kubelet: Kubelet) {
    node.annotations_mut().insert(PLAYED.to_owned(), "fake".to_owned());
    let status = node.status.get_or_insert_default();
    status.node_info = Some(NodeSystemInfo { boot_id: random_uuid(), ..NodeSystemInfo::default() });
    if kubelet == Kubelet::Silent {
        // Without a condition the node controller would remove the API server's `not-ready` taint.
        let condition = json!([{"type": "Ready", "status": "False", "reason": "KubeletNotReady",
            "message": "container runtime network not ready"}]);
        status.conditions = serde_json::from_value(condition).expect("the list above has conditions");
        node.annotations_mut().insert(SILENT.to_owned(), "true".to_owned());
    }
}

/// Ends all reports of the kubelet, and sets the condition that the node controller sets after its grace period. A report that
/// kwok has begun may still come on a node that has just booted.
pub async fn silence(client: &Client, name: &str) -> Result<(), BedError> {
    set_silent(client, name, Some("true")).await?;
    let unknown = json!({"conditions": [{
        "type": "Ready",
        "status": "Unknown",
        "reason": "NodeStatusUnknown",
        "message": "Kubelet stopped posting node status.",
    }]});
    patch_status(client, name, unknown).await
}

/// Boots the node: its kubelet reports again with another boot id, and its pods end.
pub async fn boot(client: &Client, name: &str) -> Result<(), BedError> {
    patch_status(client, name, json!({"nodeInfo": {"bootID": random_uuid()}})).await?;
    set_silent(client, name, None).await
}

async fn set_silent(client: &Client, name: &str, value: Option<&str>) -> Result<(), BedError> {
    let marking = || BedError::kubernetes(format!("mark node {name} and its pods"));
    let with = |annotation: &str| Patch::Merge(json!({"metadata": {"annotations": {annotation: value}}}));
    let nodes = Api::<Node>::all(client.clone());
    nodes.patch(name, &PatchParams::default(), &with(SILENT)).await.map_err(marking())?;
    for pod in pods::on_node(client, name).await? {
        let pods = Api::<Pod>::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
        match pods.patch(&pod.name_any(), &PatchParams::default(), &with(LOST)).await {
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            patched => drop(patched.map_err(marking())?),
        }
    }
    Ok(())
}

async fn patch_status(client: &Client, name: &str, status: Value) -> Result<(), BedError> {
    let patch = Patch::Strategic(json!({"status": status}));
    let patched = Api::<Node>::all(client.clone()).patch_status(name, &PatchParams::default(), &patch).await;
    patched.map(drop).map_err(BedError::kubernetes(format!("patch the status of node {name}")))
}
