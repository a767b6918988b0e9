//! A node's kubelet, played by kwok: silent when its instance is stopped, and back with another boot id when it has
//! booted.

use k8s_openapi::api::core::v1::{Node, NodeCondition, NodeSystemInfo, Pod};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};

use crate::error::BedError;
use crate::lambda::random_uuid;
use crate::pods;

/// The annotation of the nodes that kwok plays; it takes up none that gets it later.
const PLAYED: &str = "kwok.x-k8s.io/node";
/// The annotations in `kwok.yaml` that keep a node from being Ready, and a pod from ending.
const SILENT: &str = "spillway.test/silent";
const LOST: &str = "spillway.test/lost";

/// What the kubelet of a node that is about to be made does first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kubelet {
    Ready,
    Silent,
}

/// Lets kwok play the kubelet of a node that is about to be made.
pub(crate) fn play(node: &mut Node, kubelet: Kubelet) {
    node.annotations_mut().insert(PLAYED.to_owned(), "fake".to_owned());
    let status = node.status.get_or_insert_default();
    status.node_info = Some(NodeSystemInfo { boot_id: random_uuid(), ..NodeSystemInfo::default() });
    if kubelet == Kubelet::Silent {
        status.conditions = Some(vec![not_ready_yet()]);
        node.annotations_mut().insert(SILENT.to_owned(), "true".to_owned());
    }
}

/// What a kubelet registers its node with. Without it the node controller takes off the `not-ready` taint that the API
/// server gave the node.
fn not_ready_yet() -> NodeCondition {
    NodeCondition {
        type_: "Ready".to_owned(),
        status: "False".to_owned(),
        reason: Some("KubeletNotReady".to_owned()),
        message: Some("container runtime network not ready".to_owned()),
        ..NodeCondition::default()
    }
}

/// The kubelet reports no more, of its node and of its pods; the node is as the node controller has it after the grace
/// period for that. What kwok had in mind to report before comes all the same: not for a node that has just booted.
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

/// The kubelet reports again, after another boot: the node is Ready, and its pods end.
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
