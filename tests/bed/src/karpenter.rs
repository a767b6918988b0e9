//! Karpenter's NodeClaims on the wire: Karpenter's own definition, claims with its finalizer, and their nodes. No controller:
//! a claim that is deleted stays, as long as its finalizer does.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::{ApiResource, Patch, PatchParams, PostParams};
use kube::core::Object;
use kube::{Api, Client, ResourceExt as _};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::process::Command;

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

/// A NodeClaim, as much of it as is used here.
pub type NodeClaim = Object<Value, Status>;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    pub node_name: Option<String>,
    #[serde(rename = "providerID")]
    pub provider_id: Option<String>,
}

/// A NodePool of its own for each test, by name alone.
#[derive(Debug)]
pub struct Karpenter {
    cluster: Cluster,
    pool: String,
}

impl Karpenter {
    /// Installs Karpenter's definition of a NodeClaim, if it is not there.
    pub async fn start(cluster: &Cluster, pool: &str) -> Result<Self, BedError> {
        kubectl(cluster, &["apply", "--server-side", "--filename"]).await?;
        kubectl(cluster, &["wait", "--for=condition=Established", "--timeout=60s", "--filename"]).await?;
        Ok(Self { cluster: cluster.clone(), pool: pool.to_owned() })
    }

    /// A new NodeClaim of the pool: [`crate::NodeOptions::node_claim`] makes its node.
    pub async fn claim(&self) -> Result<NodeClaim, BedError> {
        let spec = json!({
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": NODE_CLASS},
            "requirements": [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot", "on-demand"]}],
        });
        let mut claim = NodeClaim::new("", &kind(), spec);
        claim.metadata = ObjectMeta {
            generate_name: Some(format!("{}-", self.pool)),
            labels: Some(owned([(POOL, &self.pool)])),
            finalizers: Some(vec![FINALIZER.to_owned()]),
            ..ObjectMeta::default()
        };
        let creating = BedError::kubernetes(format!("create a NodeClaim of pool {}", self.pool));
        node_claims(&self.cluster.admin()).create(&PostParams::default(), &claim).await.map_err(creating)
    }
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

/// All of a cluster.
#[must_use]
pub fn node_claims(client: &Client) -> Api<NodeClaim> {
    Api::all_with(client.clone(), &kind())
}

/// Writes the node of a claim into its status.
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

async fn kubectl(cluster: &Cluster, arguments: &[&str]) -> Result<(), BedError> {
    let doing = || format!("install Karpenter's definition: kubectl {}", arguments[0]);
    let output = Command::new(&cluster.kubectl)
        .arg(format!("--kubeconfig={}", cluster.kubeconfig.display()))
        .args(arguments)
        .arg(setup::karpenter()?.join("karpenter.sh_nodeclaims.yaml"))
        .env_clear()
        .env("HOME", &cluster.dir)
        .kill_on_drop(true)
        .output()
        .await
        .map_err(BedError::io(doing()))?;
    if output.status.success() {
        return Ok(());
    }
    Err(BedError::io(doing())(std::io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned())))
}
