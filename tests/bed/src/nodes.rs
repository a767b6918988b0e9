//! Nodes as EKS makes them: an instance in the AWS side, and a node with its provider id, played by kwok.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::storage::v1::CSINode;
use kube::api::PostParams;
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;

use crate::aws::{CapacityReservation, Instance, InstanceRequest};
use crate::cluster::Cluster;
use crate::error::BedError;
use crate::filler;
use crate::karpenter::{self, NodeClaim};
use crate::kubelet::{self, Kubelet};
use crate::pods::{named, object};
use crate::watch::{Objects, until};

const WAIT: Duration = Duration::from_mins(1);

#[derive(Debug, Clone)]
pub struct NodeOptions {
    /// The instance's private DNS name if absent, as on EKS.
    pub name: Option<String>,
    pub zone: String,
    pub group: Option<String>,
    pub spot: bool,
    pub capacity_reservation: Option<CapacityReservation>,
    pub labels: BTreeMap<String, String>,
    pub tags: BTreeMap<String, String>,
    /// Karpenter's claim: instance and node are as Karpenter makes them.
    pub node_claim: Option<NodeClaim>,
    /// Capacity.
    pub pods: u32,
    /// Adds images as a kubelet reports them, and a `CSINode` with EBS' driver.
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
            labels: BTreeMap::new(),
            tags: BTreeMap::new(),
            node_claim: None,
            pods: 110,
            kubelet_sized: false,
        }
    }
}

impl NodeOptions {
    pub fn spot() -> Self {
        Self { spot: true, ..Self::default() }
    }

    pub fn in_group(name: &str) -> Self {
        Self { group: Some(name.to_owned()), ..Self::default() }
    }

    pub fn named(name: &str) -> Self {
        Self { name: Some(name.to_owned()), ..Self::default() }
    }
}

/// A node and its instance.
#[derive(Debug, Clone)]
pub struct TestNode {
    pub name: String,
    pub instance_id: String,
    pub zone: String,
}

impl Cluster {
    /// Runs an instance and joins it to the cluster; returns when the node is Ready.
    pub async fn add_node(&self, options: NodeOptions) -> Result<TestNode, BedError> {
        let instance = self.aws_side().run_instance(&self.instance_request(&options)).await?;
        self.join(&instance, &options).await
    }

    /// The request for such a node's instance.
    pub fn instance_request(&self, options: &NodeOptions) -> InstanceRequest {
        let mut tags = options.node_claim.as_ref().map(|claim| claim.labels().clone()).unwrap_or_default();
        tags.extend(options.tags.clone());
        InstanceRequest {
            cluster: Some(self.cluster.clone()),
            group: options.group.clone(),
            zone: Some(options.zone.clone()),
            spot: options.spot,
            capacity_reservation: options.capacity_reservation.clone(),
            tags,
        }
    }

    /// Joins a running instance to the cluster; returns when its node is Ready.
    pub async fn join(&self, instance: &Instance, options: &NodeOptions) -> Result<TestNode, BedError> {
        let node = self.create_node(instance, options, Kubelet::Ready).await?;
        let client = self.admin();
        until_ready(&client, &node.name).await?;
        if let Some(claim) = &options.node_claim {
            karpenter::register(&client, claim, &node.name, instance).await?;
        }
        Ok(node)
    }

    /// Creates the node of an instance, not Ready; [`kubelet::boot`] makes it Ready.
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
        let (client, name) = (self.admin(), node.name_any());
        let creating = || BedError::kubernetes(format!("create node {name}"));
        Api::<Node>::all(client.clone()).create(&PostParams::default(), &node).await.map_err(creating())?;
        if options.kubelet_sized {
            let driver = json!({"name": "ebs.csi.aws.com", "nodeID": instance.instance_id, "allocatable": {"count": 26},
                "topologyKeys": ["kubernetes.io/os", "topology.ebs.csi.aws.com/zone", "topology.kubernetes.io/zone"]});
            let csi_node: CSINode = object(json!({"metadata": {"name": name}, "spec": {"drivers": [driver]}}));
            Api::all(client).create(&PostParams::default(), &csi_node).await.map_err(creating())?;
        }
        let Instance { instance_id, zone, .. } = instance.clone();
        Ok(TestNode { name, instance_id, zone })
    }
}

/// Waits until the cloud has deleted the node.
pub async fn until_gone(client: &Client, name: &str) -> Result<(), BedError> {
    let nodes = Api::<Node>::all(client.clone());
    until(&nodes, &named(name), &format!("node {name} to go"), WAIT, |nodes: &Objects<Node>| {
        if nodes.is_empty() { Ok(()) } else { Err("it is still there".to_owned()) }
    })
    .await
}

/// Waits until the node is Ready, without the taints of a node that is not.
pub async fn until_ready(client: &Client, name: &str) -> Result<(), BedError> {
    let nodes = Api::<Node>::all(client.clone());
    until(&nodes, &named(name), &format!("node {name} to be Ready"), WAIT, |nodes: &Objects<Node>| {
        let node = nodes.values().next().ok_or("there is none")?;
        let (ready, tainted) = (is_ready(node), is_tainted(node));
        if ready && !tainted { Ok(()) } else { Err(format!("ready: {ready}, tainted: {tainted}")) }
    })
    .await
}

fn is_ready(node: &Node) -> bool {
    let mut conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.any(|is| is.type_ == "Ready" && is.status == "True")
}

/// Returns `true` if the node has the node controller's taints of a node that is not Ready.
fn is_tainted(node: &Node) -> bool {
    let mut taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    taints.any(|taint| matches!(&*taint.key, "node.kubernetes.io/not-ready" | "node.kubernetes.io/unreachable"))
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
        labels.extend(claim.labels().clone());
    }
    labels.extend(options.labels.clone());
    let room = json!({"cpu": "2", "memory": "8Gi", "pods": options.pods.to_string()});
    let mut node = json!({
        "metadata": {"name": name, "labels": labels},
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
    if options.kubelet_sized {
        node["status"]["images"] = filler::images();
    }
    if let Some(claim) = &options.node_claim {
        node["metadata"]["ownerReferences"] = json!([karpenter::owner(claim)]);
    }
    object(node)
}
