//! Karpenter's NodeClaims on the wire: Karpenter's own definition, claims with the finalizer, and their nodes. Without the
//! controller a deleted claim keeps its finalizer.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::{ApiResource, Patch, PatchParams, PostParams};
use kube::core::Object;
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};

use crate::aws::Instance;
use crate::cluster::Cluster;
use crate::error::BedError;
use crate::setup;

const GROUP: &str = "karpenter.sh";
const API_VERSION: &str = "karpenter.sh/v1";
/// Label of a claim and of its node: the pool.
const POOL: &str = "karpenter.sh/nodepool";
const FINALIZER: &str = "karpenter.sh/termination";
/// Annotation of a claim: the deadline of its node's drain.
pub const TERMINATION_TIMESTAMP: &str = "karpenter.sh/nodeclaim-termination-timestamp";
const NODE_CLASS: &str = "default";

pub type NodeClaim = Object<Value, Value>;

/// Creates a NodeClaim of a pool, after Karpenter's definition; [`crate::NodeOptions::node_claim`] makes its node.
pub async fn create_claim(cluster: &Cluster, pool: &str) -> Result<NodeClaim, BedError> {
    let definition = setup::karpenter()?.join("karpenter.sh_nodeclaims.yaml").display().to_string();
    cluster.kubectl(&["apply", "--server-side", "--filename", &definition]).await?;
    cluster.kubectl(&["wait", "--for=condition=Established", "--timeout=60s", "--filename", &definition]).await?;
    let spec = json!({
        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": NODE_CLASS},
        "requirements": [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot", "on-demand"]}],
    });
    let mut claim = NodeClaim::new("", &kind(), spec);
    claim.metadata = ObjectMeta {
        generate_name: Some(format!("{pool}-")),
        labels: Some(owned([(POOL, pool)])),
        finalizers: Some(vec![FINALIZER.to_owned()]),
        ..ObjectMeta::default()
    };
    let creating = BedError::kubernetes(format!("create a NodeClaim of pool {pool}"));
    node_claims(&cluster.admin()).create(&PostParams::default(), &claim).await.map_err(creating)
}

fn kind() -> ApiResource {
    ApiResource {
        group: GROUP.to_owned(),
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

/// The tags of the claim's instance.
pub(crate) fn tags(claim: &NodeClaim, cluster: &str) -> BTreeMap<String, String> {
    owned([
        ("karpenter.sh/nodeclaim", &claim.name_any()),
        (POOL, pool(claim)),
        ("karpenter.k8s.aws/ec2nodeclass", NODE_CLASS),
        ("eks:eks-cluster-name", cluster),
    ])
}

/// The labels of the claim's node.
pub(crate) fn labels(claim: &NodeClaim, spot: bool) -> BTreeMap<String, String> {
    owned([
        (POOL, pool(claim)),
        ("karpenter.sh/capacity-type", if spot { "spot" } else { "on-demand" }),
        ("karpenter.sh/registered", "true"),
        ("karpenter.sh/initialized", "true"),
        ("karpenter.k8s.aws/ec2nodeclass", NODE_CLASS),
    ])
}

/// The owner reference of the claim's node.
pub(crate) fn owner(claim: &NodeClaim) -> OwnerReference {
    OwnerReference {
        api_version: API_VERSION.to_owned(),
        kind: "NodeClaim".to_owned(),
        name: claim.name_any(),
        uid: claim.uid().unwrap_or_default(),
        block_owner_deletion: Some(true),
        controller: None,
    }
}

fn pool(claim: &NodeClaim) -> &str {
    claim.labels().get(POOL).map_or("", String::as_str)
}

fn owned<const N: usize>(pairs: [(&str, &str); N]) -> BTreeMap<String, String> {
    pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
}
