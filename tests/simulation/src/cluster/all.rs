//! All clusters.

use std::ops::{Index, IndexMut};
use std::sync::Arc;

use serde_json::Value;

use super::{Cluster, Pod};
use crate::clock::Clock;
use crate::plan::{NodeId, Plan};

/// Clusters by number.
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
    pub(crate) fn of(plan: &Arc<Plan>, clock: Clock, seed: u64) -> Self {
        Self((0..plan.cluster_count()).map(|number| Cluster::of(number, Arc::clone(plan), clock, seed)).collect())
    }

    /// Returns a pod by its UID, which is unique in all clusters.
    pub(crate) fn pod(&self, uid: &str) -> Option<&Pod> {
        self.0.iter().find_map(|cluster| cluster.pods.get(uid))
    }

    /// Returns the node of a pod.
    pub(crate) fn place_of(&self, uid: &str) -> Option<NodeId> {
        let placed = |cluster: &Cluster| Some(cluster.id_of(cluster.pods.get(uid)?.node.as_deref()?));
        self.0.iter().find_map(placed)
    }

    pub(crate) fn pods_on<'a>(&'a self, node: &'a NodeId) -> impl Iterator<Item = &'a Pod> {
        self[node.cluster].pods_on(&node.name)
    }

    pub(crate) fn node(&self, node: &NodeId) -> Option<&Value> {
        self[node.cluster].nodes.get(&node.name)
    }

    /// Returns `true` if another cluster has a node of the same name.
    pub(crate) fn has_namesake(&self, node: &NodeId) -> bool {
        self.0.iter().any(|cluster| cluster.number != node.cluster && cluster.nodes.contains_key(&node.name))
    }

    /// Returns the present instance of a node.
    pub(crate) fn instance_at(&self, node: &NodeId) -> Option<&str> {
        self[node.cluster].instance_at(&node.name)
    }

    pub(crate) fn reports(&self, instance: &str) -> bool {
        self.0.iter().any(|cluster| cluster.reports(instance))
    }

    pub(crate) fn keeps_volumes(&self, node: &NodeId) -> bool {
        self[node.cluster].keeps_volumes(&node.name)
    }

    pub(crate) fn allows(&self, app: usize) -> bool {
        self.0.iter().any(|cluster| cluster.allows(app))
    }
}
