//! Nodes as EKS makes them: an instance in the AWS side, and its node with the instance's provider
//! id, played by kwok.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::storage::v1::CSINode;
use kube::api::{PostParams, WatchParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;

use crate::aws::{CapacityReservation, Instance, InstanceRequest};
use crate::cluster::Cluster;
use crate::error::BedError;
use crate::filler;
use crate::karpenter::{self, NodeClaim};
use crate::kubelet::{self, Kubelet};
use crate::watch::{Objects, until};

const WAIT: Duration = Duration::from_mins(1);

#[derive(Debug, Clone)]
pub struct NodeOptions {
    /// The instance's private DNS name when absent, as EKS has it.
    pub name: Option<String>,
    pub zone: String,
    pub group: Option<String>,
    pub spot: bool,
    pub capacity_reservation: Option<CapacityReservation>,
    /// Whether the instance's tags name the cluster.
    pub cluster_tag: bool,
    pub labels: BTreeMap<String, String>,
    pub tags: BTreeMap<String, String>,
    /// Karpenter's: the instance and the node are as Karpenter makes them for this claim.
    pub node_claim: Option<NodeClaim>,
    /// How many pods fit.
    pub pods: u32,
    /// The node has images as a kubelet reports them, and a `CSINode` with EBS' driver.
    pub kubelet_sized: bool,
}

impl Default for NodeOptions {
    fn default() -> Self {
        Self {
            name: None,
            zone: "us-east-1a".to_owned(),
            group: None,
            spot: false,
            capacity_reservation: None,
            cluster_tag: true,
            labels: BTreeMap::new(),
            tags: BTreeMap::new(),
            node_claim: None,
            pods: 110,
            kubelet_sized: false,
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
        let instance = self.aws_side().run_instance(&self.instance_request(&options)).await?;
        self.join(&instance, &options).await
    }

    /// The instance that such a node runs on.
    #[must_use]
    pub fn instance_request(&self, options: &NodeOptions) -> InstanceRequest {
        let claim = options.node_claim.as_ref();
        let mut tags = claim.map(|claim| karpenter::tags(claim, &self.cluster)).unwrap_or_default();
        tags.extend(options.tags.clone());
        InstanceRequest {
            cluster: options.cluster_tag.then(|| self.cluster.clone()),
            group: options.group.clone(),
            zone: Some(options.zone.clone()),
            spot: options.spot,
            capacity_reservation: options.capacity_reservation.clone(),
            tags,
            ..InstanceRequest::default()
        }
    }

    /// Joins a running instance to the cluster; answers when pods can come.
    pub async fn join(&self, instance: &Instance, options: &NodeOptions) -> Result<TestNode, BedError> {
        let node = self.create_node(instance, options, Kubelet::Ready).await?;
        let client = self.admin();
        until_ready(&client, &node.name).await?;
        if let Some(claim) = &options.node_claim {
            karpenter::register(&client, claim, &node.name, instance).await?;
        }
        Ok(node)
    }

    /// Makes the node of an instance whose kubelet is not ready yet; [`kubelet::boot`] makes it so.
    pub async fn register(&self, instance: &Instance, options: &NodeOptions) -> Result<TestNode, BedError> {
        self.create_node(instance, options, Kubelet::Silent).await
    }

    async fn create_node(
        &self,
        instance: &Instance,
        options: &NodeOptions,
        kubelet: Kubelet,
    ) -> Result<TestNode, BedError> {
        let mut node = node(instance, options);
        kubelet::play(&mut node, kubelet);
        let name = node.name_any();
        let creating = BedError::kubernetes(format!("create node {name}"));
        let client = self.admin();
        Api::<Node>::all(client.clone()).create(&PostParams::default(), &node).await.map_err(creating)?;
        if options.kubelet_sized {
            let creating = BedError::kubernetes(format!("create CSINode {name}"));
            let csi_node = csi_node(&name, &instance.instance_id);
            Api::<CSINode>::all(client).create(&PostParams::default(), &csi_node).await.map_err(creating)?;
        }
        let Instance { instance_id, private_dns_name, provider_id, zone, .. } = instance.clone();
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

/// Waits until the node is Ready, and the taints of one that is not have been taken off.
pub async fn until_ready(client: &Client, name: &str) -> Result<(), BedError> {
    until_one(client, name, "to be ready", |node| is_ready(node) && !is_tainted(node)).await
}

/// Waits until the node controller has seen that the kubelet is silent.
pub async fn until_not_ready(client: &Client, name: &str) -> Result<(), BedError> {
    until_one(client, name, "to be not ready", |node| !is_ready(node) && is_tainted(node)).await
}

/// Waits until the node controller has seen that the node is cordoned.
pub async fn until_cordon_is_seen(client: &Client, name: &str) -> Result<(), BedError> {
    until_one(client, name, "to have the cordon's taint", |node| has_taint(node, &["unschedulable"])).await
}

/// Waits until the node is Ready after another boot than this one.
pub async fn until_rebooted(client: &Client, name: &str, boot_id: &str) -> Result<(), BedError> {
    until_one(client, name, "to be ready again", |node| {
        is_ready(node) && !is_tainted(node) && boot_id_of(node) != boot_id
    })
    .await
}

/// Which boot of its machine the node runs in.
pub async fn boot_id(client: &Client, name: &str) -> Result<String, BedError> {
    let node = Api::<Node>::all(client.clone()).get(name).await;
    Ok(boot_id_of(&node.map_err(BedError::kubernetes(format!("get node {name}")))?).to_owned())
}

async fn until_one(client: &Client, name: &str, what: &str, met: impl Fn(&Node) -> bool) -> Result<(), BedError> {
    let nodes = Api::<Node>::all(client.clone());
    until(&nodes, &named(name), &format!("node {name} {what}"), WAIT, |nodes: &Objects<Node>| {
        let node = nodes.values().next().ok_or("there is none")?;
        if met(node) { Ok(()) } else { Err(format!("ready: {}, tainted: {}", is_ready(node), is_tainted(node))) }
    })
    .await
}

fn is_ready(node: &Node) -> bool {
    let mut conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.any(|is| is.type_ == "Ready" && is.status == "True")
}

/// With the node controller's own taints of a node that is not Ready.
fn is_tainted(node: &Node) -> bool {
    has_taint(node, &["not-ready", "unreachable"])
}

/// With one of the node controller's own taints.
fn has_taint(node: &Node, names: &[&str]) -> bool {
    let mut taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    taints.any(|taint| taint.key.strip_prefix("node.kubernetes.io/").is_some_and(|name| names.contains(&name)))
}

fn boot_id_of(node: &Node) -> &str {
    let info = node.status.as_ref().and_then(|status| status.node_info.as_ref());
    info.map_or("", |info| &info.boot_id)
}

fn named(name: &str) -> WatchParams {
    WatchParams::default().fields(&format!("metadata.name={name}"))
}

fn csi_node(name: &str, instance_id: &str) -> CSINode {
    let driver = json!({"name": "ebs.csi.aws.com", "nodeID": instance_id, "allocatable": {"count": 26},
        "topologyKeys": ["kubernetes.io/os", "topology.ebs.csi.aws.com/zone", "topology.kubernetes.io/zone"]});
    let csi_node = json!({"metadata": {"name": name}, "spec": {"drivers": [driver]}});
    serde_json::from_value(csi_node).expect("the object above is a CSINode")
}

fn node(instance: &Instance, options: &NodeOptions) -> Node {
    let name = options.name.as_deref().unwrap_or(&instance.private_dns_name);
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
        labels.extend(karpenter::labels(claim, options.spot));
    }
    labels.extend(options.labels.clone());
    let room = json!({"cpu": "2", "memory": "8Gi", "pods": options.pods.to_string()});
    let node = json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": labels,
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
    if options.kubelet_sized {
        let images = serde_json::from_value(filler::images()).expect("they are images");
        node.status.get_or_insert_default().images = Some(images);
    }
    if let Some(claim) = &options.node_claim {
        node.metadata.owner_references = Some(vec![karpenter::owner(claim)]);
    }
    node
}
