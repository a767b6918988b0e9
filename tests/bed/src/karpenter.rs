//! Karpenter's NodeClaims on the wire: Karpenter's own definition, claims with the finalizer, and their nodes. Without the
//! controller a deleted claim keeps its finalizer.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{ApiResource, Patch, PatchParams, PostParams};
use kube::core::Object;
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};

use crate::aws::Instance;
use crate::cluster::Cluster;
use crate::error::BedError;
use crate::setup;

const API_VERSION: &str = "karpenter.sh/v1";
/// Label of a claim and of its node, and tag of its instance: the pool.
const POOL: &str = "karpenter.sh/nodepool";
const FINALIZER: &str = "karpenter.sh/termination";
/// Annotation of a claim: the deadline of its node's drain.
pub const TERMINATION_TIMESTAMP: &str = "karpenter.sh/nodeclaim-termination-timestamp";

pub type NodeClaim = Object<Value, Value>;

/// Creates a NodeClaim of a pool, after Karpenter's definition; [`crate::NodeOptions::node_claim`] makes its node.
pub async fn create_claim(cluster: &Cluster, pool: &str) -> Result<NodeClaim, BedError> {
    let definition = setup::karpenter()?.join("karpenter.sh_nodeclaims.yaml").display().to_string();
    cluster.kubectl(&["apply", "--server-side", "--filename", &definition]).await?;
    cluster.kubectl(&["wait", "--for=condition=Established", "--timeout=60s", "--filename", &definition]).await?;
    let spec = json!({
        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
        "requirements": [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot", "on-demand"]}],
    });
    let mut claim = NodeClaim::new("", &kind(), spec);
    claim.metadata = ObjectMeta {
        generate_name: Some(format!("{pool}-")),
        labels: Some([(POOL.to_owned(), pool.to_owned())].into()),
        finalizers: Some(vec![FINALIZER.to_owned()]),
        ..ObjectMeta::default()
    };
    let creating = BedError::kubernetes(format!("create a NodeClaim of pool {pool}"));
    node_claims(&cluster.admin()).create(&PostParams::default(), &claim).await.map_err(creating)
}

fn kind() -> ApiResource {
    ApiResource {
        group: "karpenter.sh".to_owned(),
        version: "v1".to_owned(),
        api_version: API_VERSION.to_owned(),
        kind: "NodeClaim".to_owned(),
        plural: "nodeclaims".to_owned(),
    }
}

pub fn node_claims(client: &Client) -> Api<NodeClaim> {
    Api::all_with(client.clone(), &kind())
}

/// Writes the claim's node into its status.
pub(crate) async fn register(
    client: &Client,
    claim: &NodeClaim,
    node: &str,
    instance: &Instance,
) -> Result<(), BedError> {
    let status = Patch::Merge(json!({"status": {"nodeName": node, "providerID": instance.provider_id}}));
    let name = claim.name_any();
    let registering = BedError::kubernetes(format!("register node {node} with NodeClaim {name}"));
    node_claims(client).patch_status(&name, &PatchParams::default(), &status).await.map(drop).map_err(registering)
}

/// The owner reference of the claim's node.
pub(crate) fn owner(claim: &NodeClaim) -> Value {
    let (name, uid) = (claim.name_any(), claim.uid());
    json!({"apiVersion": API_VERSION, "kind": "NodeClaim", "name": name, "uid": uid, "blockOwnerDeletion": true})
}
