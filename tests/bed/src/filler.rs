//! What only makes a cluster large: nodes and pods as life has them, which nobody acts on.
//!
//! kwok leaves the nodes alone, because they lack its annotation. The pods are bound as they are
//! created, and stay Pending for ever.

use futures_util::{StreamExt as _, TryStreamExt as _};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::error::BedError;
use crate::pods::create_namespace;

const NAMESPACE: &str = "filler";
/// More do not make it faster: the API server has no more processors for them.
const CREATED_AT_ONCE: usize = 16;
/// As many as a kubelet reports (`nodeStatusMaxImages`).
const IMAGES: usize = 50;

/// How much of it.
#[derive(Debug, Clone, Copy)]
pub struct Filler {
    /// How many nodes.
    pub nodes: usize,
    /// How many pods, spread over them.
    pub pods: usize,
}

impl Filler {
    /// Puts it into a cluster that has none yet.
    pub async fn pour(self, client: &Client) -> Result<(), BedError> {
        create_namespace(client, NAMESPACE).await?;
        let nodes = Api::<Node>::all(client.clone());
        let creations = (0..self.nodes).map(|number| create(&nodes, node(number), "filler nodes"));
        at_once(creations).await?;
        let pods = Api::<Pod>::namespaced(client.clone(), NAMESPACE);
        let creations = (0..self.pods).map(|number| create(&pods, pod(number, number % self.nodes), "filler pods"));
        at_once(creations).await
    }
}

async fn at_once(creations: impl Iterator<Item = impl Future<Output = Result<(), BedError>>>) -> Result<(), BedError> {
    futures_util::stream::iter(creations).buffer_unordered(CREATED_AT_ONCE).try_collect().await
}

async fn create<K>(objects: &Api<K>, object: Value, what: &str) -> Result<(), BedError>
where
    K: Clone + std::fmt::Debug + serde::Serialize + serde::de::DeserializeOwned,
{
    let object: K = serde_json::from_value(object).expect("what is made below is what it says");
    let creating = BedError::kubernetes(format!("create {what}"));
    objects.create(&PostParams::default(), &object).await.map(drop).map_err(creating)
}

fn node_name(number: usize) -> String {
    format!("ip-192-168-{}-{}.ec2.internal", number / 256, number % 256)
}

/// As many images as a kubelet reports.
pub(crate) fn images() -> Value {
    let image = |image: usize| {
        let repository = format!("123456789012.dkr.ecr.us-east-1.amazonaws.com/services/backend-{image:02}");
        json!({
            "names": [format!("{repository}@sha256:{image:064x}"), format!("{repository}:2026.11.21-{image:08x}")],
            "sizeBytes": 150_000_000 + image,
        })
    };
    (0..IMAGES).map(image).collect()
}

/// Some 15 KB, nearly all of it images, as a kubelet's node has them.
fn node(number: usize) -> Value {
    let name = node_name(number);
    let now = Timestamp::now();
    json!({
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": "us-east-1a"},
        },
        "spec": {"providerID": format!("aws:///us-east-1a/i-{number:017x}")},
        "status": {
            // Without it the node controller would mark and taint each of them.
            "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": now, "lastTransitionTime": now}],
            "images": images(),
        },
    })
}

fn pod(number: usize, node: usize) -> Value {
    json!({
        "metadata": {
            "name": format!("backend-{number:06}"),
            "labels": {"app.kubernetes.io/name": "backend", "app.kubernetes.io/instance": format!("backend-{number:06}")},
        },
        "spec": {
            "nodeName": node_name(node),
            "containers": [{
                "name": "main",
                "image": "123456789012.dkr.ecr.us-east-1.amazonaws.com/services/backend-00:2026.11.21",
                "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
                "ports": [{"name": "http", "containerPort": 8080}],
            }],
            // However long it stands: nobody taints it away.
            "tolerations": [{"operator": "Exists"}],
        },
    })
}
