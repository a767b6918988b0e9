//! Karpenter's NodeClaim: made, read, and what it gives the instance and the node that are made for it.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::{ApiResource, Patch, PatchParams, PostParams};
use kube::core::Object;
use kube::{Api, Client, ResourceExt as _};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::aws::Instance;
use crate::cluster::Cluster;
use crate::error::BedError;

pub(crate) const GROUP: &str = "karpenter.sh";
pub(crate) const API_VERSION: &str = "karpenter.sh/v1";
/// The label that names a claim's pool.
pub(crate) const POOL: &str = "karpenter.sh/nodepool";
/// Of a claim and of its node: neither goes before Karpenter lets it.
pub(crate) const FINALIZER: &str = "karpenter.sh/termination";
/// When the node is to be gone, whatever holds its pods.
pub const TERMINATION_TIMESTAMP: &str = "karpenter.sh/nodeclaim-termination-timestamp";
const NODE_CLASS: &str = "default";

/// A NodeClaim, as much of it as is used here.
pub type NodeClaim = Object<Value, Status>;

/// What Karpenter says of it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    pub node_name: Option<String>,
    #[serde(rename = "providerID")]
    pub provider_id: Option<String>,
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

/// What Karpenter's definitions ask for; the stand-in launches the same instance for every claim.
pub(crate) fn spec() -> Value {
    json!({
        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": NODE_CLASS},
        "requirements": [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot", "on-demand"]}],
    })
}

pub(crate) async fn create(cluster: &Cluster, pool: &str) -> Result<NodeClaim, BedError> {
    let mut claim = NodeClaim::new("", &kind(), spec());
    claim.metadata = ObjectMeta {
        generate_name: Some(format!("{pool}-")),
        labels: Some(BTreeMap::from([(POOL.to_owned(), pool.to_owned())])),
        finalizers: Some(vec![FINALIZER.to_owned()]),
        ..ObjectMeta::default()
    };
    let creating = BedError::kubernetes(format!("create a NodeClaim of pool {pool}"));
    node_claims(&cluster.admin()).create(&PostParams::default(), &claim).await.map_err(creating)
}

/// Says in a claim which node it has become.
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

/// What ties a node to its claim.
pub(crate) fn tie(claim: &NodeClaim, node: &mut ObjectMeta) {
    node.finalizers = Some(vec![FINALIZER.to_owned()]);
    node.owner_references = Some(vec![OwnerReference {
        api_version: API_VERSION.to_owned(),
        kind: "NodeClaim".to_owned(),
        name: claim.name_any(),
        uid: claim.uid().unwrap_or_default(),
        block_owner_deletion: Some(true),
        controller: None,
    }]);
}

pub(crate) fn pool(claim: &NodeClaim) -> &str {
    claim.labels().get(POOL).map_or("", String::as_str)
}

/// The termination timestamp as it stands now: whoever is in a hurry may bring it forward.
pub(crate) async fn current_deadline(client: &Client, claim: &NodeClaim) -> Result<Option<Timestamp>, BedError> {
    let reading = BedError::kubernetes(format!("read NodeClaim {}", claim.name_any()));
    let claim = node_claims(client).get_opt(&claim.name_any()).await.map_err(reading)?;
    Ok(claim.as_ref().and_then(deadline))
}

/// The termination timestamp, if somebody has set one.
pub(crate) fn deadline(claim: &NodeClaim) -> Option<Timestamp> {
    claim.annotations().get(TERMINATION_TIMESTAMP)?.parse().ok()
}

/// What Karpenter sets it to when nobody has: the claim's own `terminationGracePeriod` after its deletion.
pub(crate) fn own_deadline(claim: &NodeClaim) -> Option<Timestamp> {
    let period: SignedDuration = claim.spec.get("terminationGracePeriod")?.as_str()?.parse().ok()?;
    let deleted = claim.metadata.deletion_timestamp.as_ref()?.0;
    deleted.checked_add(period).ok()
}

fn owned<const N: usize>(pairs: [(&str, &str); N]) -> BTreeMap<String, String> {
    pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deleted(annotation: Option<&str>, period: Option<&str>) -> NodeClaim {
        serde_json::from_value(json!({
            "metadata": {
                "name": "default-x7k2p",
                "deletionTimestamp": "2026-11-21T16:00:00Z",
                "annotations": annotation.map(|text| json!({TERMINATION_TIMESTAMP: text})),
            },
            "spec": {"terminationGracePeriod": period},
        }))
        .unwrap()
    }

    #[test]
    fn the_deadline_is_what_somebody_set_or_else_the_claims_own_period_after_its_deletion() {
        let at = |text: &str| Some(text.parse::<Timestamp>().unwrap());
        assert_eq!(deadline(&deleted(Some("2026-11-21T15:59:00Z"), Some("1h"))), at("2026-11-21T15:59:00Z"));
        assert_eq!(deadline(&deleted(None, Some("1h"))), None);
        assert_eq!(own_deadline(&deleted(None, Some("1h30m"))), at("2026-11-21T17:30:00Z"));
        assert_eq!(own_deadline(&deleted(None, None)), None);
    }
}
