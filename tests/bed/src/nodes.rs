//! Nodes as EKS makes them: an instance in the AWS side, and its node with the instance's provider
//! id, played by kwok.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::api::{PostParams, WatchParams};
use kube::{Api, Client};
use serde_json::json;

use crate::aws::{Instance, InstanceRequest};
use crate::cluster::Cluster;
use crate::error::BedError;
use crate::node_claim::{self, NodeClaim};
use crate::watch::{Objects, until};

const WAIT: Duration = Duration::from_mins(1);

#[derive(Debug, Clone)]
pub struct NodeOptions {
    /// The instance's private DNS name when absent, as EKS has it.
    pub name: Option<String>,
    pub zone: String,
    pub group: Option<String>,
    pub spot: bool,
    /// Whether the instance's tags name the cluster.
    pub cluster_tag: bool,
    pub labels: BTreeMap<String, String>,
    pub tags: BTreeMap<String, String>,
    /// Karpenter's: the instance and the node are as Karpenter makes them for this claim.
    pub node_claim: Option<NodeClaim>,
    /// How many pods fit.
    pub pods: u32,
}

impl Default for NodeOptions {
    fn default() -> Self {
        Self {
            name: None,
            zone: "us-east-1a".to_owned(),
            group: None,
            spot: false,
            cluster_tag: true,
            labels: BTreeMap::new(),
            tags: BTreeMap::new(),
            node_claim: None,
            pods: 110,
        }
    }
}

/// A node and the instance under it.
#[derive(Debug, Clone)]
pub struct TestNode {
    pub name: String,
    pub instance_id: String,
    /// What EC2 calls the instance, whatever the node is called.
    pub private_dns_name: String,
    pub provider_id: String,
    pub zone: String,
}

impl Cluster {
    /// Runs an instance and joins it to the cluster; answers when pods can come.
    pub async fn add_node(&self, options: NodeOptions) -> Result<TestNode, BedError> {
        let claim = options.node_claim.as_ref();
        let mut tags = claim.map(|claim| node_claim::tags(claim, &self.cluster)).unwrap_or_default();
        tags.extend(options.tags.clone());
        let request = InstanceRequest {
            cluster: options.cluster_tag.then(|| self.cluster.clone()),
            group: options.group.clone(),
            zone: Some(options.zone.clone()),
            spot: options.spot,
            tags,
            name_form: None,
        };
        let instance = self.aws_side().run_instance(&request).await?;
        let name = options.name.clone().unwrap_or_else(|| instance.private_dns_name.clone());
        let client = self.admin();
        let node = node(&name, &instance, &options);
        let nodes = Api::<Node>::all(client.clone());
        let creating = BedError::kubernetes(format!("create node {name}"));
        nodes.create(&PostParams::default(), &node).await.map_err(creating)?;
        until_ready(&nodes, &name).await?;
        if let Some(claim) = claim {
            node_claim::register(&client, claim, &name, &instance).await?;
        }
        let Instance { instance_id, private_dns_name, provider_id, zone, .. } = instance;
        Ok(TestNode { name, instance_id, private_dns_name, provider_id, zone })
    }
}

/// Waits until the cloud has taken the node away.
pub async fn until_gone(client: &Client, name: &str) -> Result<(), BedError> {
    let nodes = Api::<Node>::all(client.clone());
    let what = format!("node {name} to go");
    until(&nodes, &named(name), &what, WAIT, |nodes: &Objects<Node>| {
        if nodes.is_empty() { Ok(()) } else { Err("it is still there".to_owned()) }
    })
    .await
}

/// Ready, and the taint of a node that is not yet has been taken off.
async fn until_ready(nodes: &Api<Node>, name: &str) -> Result<(), BedError> {
    let what = format!("node {name} to be ready");
    until(nodes, &named(name), &what, WAIT, |nodes: &Objects<Node>| {
        let node = nodes.values().next().ok_or("there is none")?;
        let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
        let ready = conditions.clone().any(|is| is.type_ == "Ready" && is.status == "True");
        let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
        let tainted = taints.clone().any(|taint| taint.key == "node.kubernetes.io/not-ready");
        if ready && !tainted { Ok(()) } else { Err(format!("ready: {ready}, tainted: {tainted}")) }
    })
    .await
}

fn named(name: &str) -> WatchParams {
    WatchParams::default().fields(&format!("metadata.name={name}"))
}

fn node(name: &str, instance: &Instance, options: &NodeOptions) -> Node {
    let region = options.zone.trim_end_matches(|c: char| c.is_ascii_lowercase());
    let mut labels = BTreeMap::from(
        [
            ("kubernetes.io/hostname", name),
            ("kubernetes.io/os", "linux"),
            ("kubernetes.io/arch", "amd64"),
            ("node.kubernetes.io/instance-type", "m7i.large"),
            ("topology.kubernetes.io/region", region),
            ("topology.kubernetes.io/zone", &options.zone),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned())),
    );
    if let Some(claim) = &options.node_claim {
        labels.extend(node_claim::labels(claim, options.spot));
    }
    labels.extend(options.labels.clone());
    let room = json!({"cpu": "2", "memory": "8Gi", "pods": options.pods.to_string()});
    let node = json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": labels,
            "annotations": {"kwok.x-k8s.io/node": "fake"},
        },
        "spec": {"providerID": instance.provider_id},
        "status": {
            "capacity": room,
            "allocatable": room,
            "addresses": [
                {"type": "InternalIP", "address": instance.private_ip},
                {"type": "InternalDNS", "address": instance.private_dns_name},
                {"type": "Hostname", "address": instance.private_dns_name},
            ],
        },
    });
    let mut node: Node = serde_json::from_value(node).expect("the node above is a Node");
    if let Some(claim) = &options.node_claim {
        node_claim::tie(claim, &mut node.metadata);
    }
    node
}
