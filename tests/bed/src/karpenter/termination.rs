//! What becomes of a deleted NodeClaim, in Karpenter's order (v1.12.1, `pkg/controllers/nodeclaim/lifecycle` and
//! `pkg/controllers/node/termination`; the replacement is its provisioner's work).

use k8s_openapi::api::core::v1::{Node, Taint};
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;

use super::drain;
use crate::cluster::Cluster;
use crate::error::BedError;
use crate::node_claim::{self, FINALIZER, NodeClaim, TERMINATION_TIMESTAMP, node_claims};
use crate::nodes::NodeOptions;

/// What Karpenter marks a node with that it takes away; it does not cordon it.
const DISRUPTED: &str = "karpenter.sh/disrupted";

pub(super) async fn terminate(cluster: &Cluster, claim: &NodeClaim) -> Result<(), BedError> {
    set_deadline(cluster, claim).await?;
    let status = claim.status.clone().unwrap_or_default();
    if let Some(node) = status.node_name {
        replace(cluster, node_claim::pool(claim)).await?;
        delete_node(cluster, &node).await?;
        taint(cluster, &node).await?;
        drain::drain(&cluster.admin(), claim, &node).await?;
        if let Some(id) = status.provider_id.as_deref().and_then(|id| id.rsplit('/').next()) {
            cluster.aws_side().terminate_instance(id).await?;
        }
        let nodes = Api::<Node>::all(cluster.admin());
        release(&nodes, &node).await?;
    }
    release(&node_claims(&cluster.admin()), &claim.name_any()).await
}

/// Somebody's own is kept.
async fn set_deadline(cluster: &Cluster, claim: &NodeClaim) -> Result<(), BedError> {
    let (None, Some(own)) = (node_claim::deadline(claim), node_claim::own_deadline(claim)) else { return Ok(()) };
    let annotations = json!({TERMINATION_TIMESTAMP: own.round(jiff::Unit::Second).unwrap_or(own).to_string()});
    let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
    let setting = BedError::kubernetes(format!("set the deadline of NodeClaim {}", claim.name_any()));
    let claims = node_claims(&cluster.admin());
    claims.patch(&claim.name_any(), &PatchParams::default(), &patch).await.map(drop).map_err(setting)
}

/// The pods that are to leave have somewhere to go before they are asked to.
async fn replace(cluster: &Cluster, pool: &str) -> Result<(), BedError> {
    let claim = node_claim::create(cluster, pool).await?;
    cluster.add_node(NodeOptions { node_claim: Some(claim), ..NodeOptions::default() }).await.map(drop)
}

/// Its finalizer keeps the node until it has been drained.
async fn delete_node(cluster: &Cluster, name: &str) -> Result<(), BedError> {
    let nodes = Api::<Node>::all(cluster.admin());
    ignore_missing(nodes.delete(name, &DeleteParams::default()).await.map(drop))
        .map_err(BedError::kubernetes(format!("delete node {name}")))
}

/// With the label that takes it out of load balancers, in one patch that fails if the node has changed.
async fn taint(cluster: &Cluster, name: &str) -> Result<(), BedError> {
    let nodes = Api::<Node>::all(cluster.admin());
    let tainting = || BedError::kubernetes(format!("taint node {name}"));
    loop {
        let node = nodes.get(name).await.map_err(tainting())?;
        let mut taints = node.spec.and_then(|spec| spec.taints).unwrap_or_default();
        if taints.iter().any(|taint| taint.key == DISRUPTED) {
            return Ok(());
        }
        taints.push(Taint { key: DISRUPTED.to_owned(), effect: "NoSchedule".to_owned(), ..Taint::default() });
        let patch = Patch::Merge(json!({
            "metadata": {
                "resourceVersion": node.metadata.resource_version,
                "labels": {"node.kubernetes.io/exclude-from-external-load-balancers": "karpenter"},
            },
            "spec": {"taints": taints},
        }));
        match nodes.patch(name, &PatchParams::default(), &patch).await {
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            patched => return patched.map(drop).map_err(tainting()),
        }
    }
}

/// Takes Karpenter's finalizer away. It is the only one that these objects have here.
async fn release<K>(objects: &Api<K>, name: &str) -> Result<(), BedError>
where
    K: Clone + serde::de::DeserializeOwned + std::fmt::Debug,
{
    let patch = Patch::Merge(json!({"metadata": {"finalizers": []}}));
    ignore_missing(objects.patch(name, &PatchParams::default(), &patch).await.map(drop))
        .map_err(BedError::kubernetes(format!("take {FINALIZER} from {name}")))
}

fn ignore_missing(answer: kube::Result<()>) -> kube::Result<()> {
    match answer {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        answer => answer,
    }
}
