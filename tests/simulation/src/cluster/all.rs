//! All clusters: what concerns one of them goes to it, and is looked up there.

use std::ops::{Index, IndexMut};
use std::sync::Arc;

use serde_json::Value;

use super::{Cluster, Pod};
use crate::clock::Clock;
use crate::plan::{NodeId, Plan};

/// The clusters by their numbers.
#[derive(Debug)]
pub(crate) struct Clusters(Vec<Cluster>);

impl Index<usize> for Clusters {
    type Output = Cluster;

    fn index(&self, number: usize) -> &Cluster {
        &self.0[number]
    }
}

impl IndexMut<usize> for Clusters {
    fn index_mut(&mut self, number: usize) -> &mut Cluster {
        &mut self.0[number]
    }
}

impl Clusters {
    /// The clusters of a plan, without nodes.
    pub(crate) fn of(plan: &Arc<Plan>, clock: Clock, seed: u64) -> Self {
        Self((0..plan.cluster_count()).map(|number| Cluster::of(number, Arc::clone(plan), clock, seed)).collect())
    }

    /// A pod by its UID, which is of one cluster.
    pub(crate) fn pod(&self, uid: &str) -> Option<&Pod> {
        self.0.iter().find_map(|cluster| cluster.pods.get(uid))
    }

    /// The node of a pod.
    pub(crate) fn place_of(&self, uid: &str) -> Option<NodeId> {
        let placed = |cluster: &Cluster| Some(cluster.id_of(cluster.pods.get(uid)?.node.as_deref()?));
        self.0.iter().find_map(placed)
    }

    /// The pods on a node.
    pub(crate) fn pods_on<'a>(&'a self, node: &'a NodeId) -> impl Iterator<Item = &'a Pod> {
        self[node.cluster].pods_on(&node.name)
    }

    /// A node, if it is there.
    pub(crate) fn node(&self, node: &NodeId) -> Option<&Value> {
        self[node.cluster].nodes.get(&node.name)
    }

    /// Whether another cluster has a node of the same name.
    pub(crate) fn has_namesake(&self, node: &NodeId) -> bool {
        self.0.iter().any(|cluster| cluster.number != node.cluster && cluster.nodes.contains_key(&node.name))
    }

    /// The instance whose node that is by now.
    pub(crate) fn instance_at(&self, node: &NodeId) -> Option<&str> {
        self[node.cluster].instance_at(&node.name)
    }

    /// Whether an instance has a node, and its kubelet reports.
    pub(crate) fn reports(&self, instance: &str) -> bool {
        self.0.iter().any(|cluster| cluster.reports(instance))
    }

    /// Whether a volume is attached to a node which no pod uses there.
    pub(crate) fn keeps_volumes(&self, node: &NodeId) -> bool {
        self[node.cluster].keeps_volumes(&node.name)
    }

    /// Whether the one budget of an app allows a disruption.
    pub(crate) fn allows(&self, app: usize) -> bool {
        self.0.iter().any(|cluster| cluster.allows(app))
    }
}
