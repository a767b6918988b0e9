//! Nodes and pods of realistic size, on which nothing acts. kwok leaves the nodes alone, because they lack its annotation. The
//! pods are bound as they are created, and stay Pending.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::error::BedError;
use crate::pods::{create_all, create_namespace, object};

const NAMESPACE: &str = "filler";
/// A kubelet's limit of reported images (`nodeStatusMaxImages`).
const IMAGES: usize = 50;

/// Counts of nodes and of pods on them.
#[derive(Debug, Clone, Copy)]
pub struct Filler {
    pub nodes: usize,
    pub pods: usize,
}

impl Filler {
    /// Fills a cluster, once.
    pub async fn pour(self, client: &Client) -> Result<(), BedError> {
        create_namespace(client, NAMESPACE).await?;
        create_all(&Api::<Node>::all(client.clone()), (0..self.nodes).map(|number| object(node(number)))).await?;
        let pods = (0..self.pods).map(|number| object(pod(number, number % self.nodes)));
        create_all(&Api::<Pod>::namespaced(client.clone(), NAMESPACE), pods).await
    }
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

/// A node of some 15 KB, nearly all of it images.
fn node(number: usize) -> Value {
    let (name, now) = (node_name(number), Timestamp::now());
    json!({
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": "us-east-1a"},
        },
        "spec": {"providerID": format!("aws:///us-east-1a/i-{number:017x}")},
        "status": {
            // Without it the node controller would mark and taint each node.
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
            // The node controller's taints must not evict it.
            "tolerations": [{"operator": "Exists"}],
        },
    })
}
