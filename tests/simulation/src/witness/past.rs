//! Facts so far, recorded once for all witnesses.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;
use spillway_contract::node::is_cordoned;

use crate::clock::Clock;
use crate::cluster::Clusters;
use crate::fact::{Fact, LeaveRequest, Method};
use crate::plan::{Command, NodeId};

/// Pods by UID, and instances by id.
#[derive(Debug, Default)]
pub(crate) struct Past {
    pub(super) pods: BTreeMap<String, PodPast>,
    instances: BTreeMap<String, InstancePast>,
}

/// A pod that was bound to a node.
#[derive(Debug, Default)]
pub(super) struct PodPast {
    pub(super) instance: String,
    pub(super) node: NodeId,
    pub(super) app: usize,
    pub(super) bound: Timestamp,
    /// Smallest grace period of its deletion.
    pub(super) given_s: Option<u64>,
    pub(super) gone: Option<Timestamp>,
    /// Removed by the garbage collector, perhaps while its containers ran.
    pub(super) is_collected: bool,
    /// An eviction or deletion was requested.
    pub(super) is_requested: bool,
    pub(super) first_eviction: Option<Timestamp>,
}

/// The node of an instance.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct InstancePast {
    /// Uncordons by people.
    pub(super) uncordons: usize,
    /// Uncordoned by the product.
    is_given_back: bool,
    pub(super) opted_out: Option<Timestamp>,
    pub(super) claimed: Option<Timestamp>,
    /// Start of the kubelet's silence, as the control plane notices it.
    pub(super) missed: Option<Timestamp>,
    /// Last return of the kubelet.
    pub(super) back: Option<Timestamp>,
}

impl InstancePast {
    /// Returns `true` if the node was uncordoned: pods that come to it then may stay.
    pub(super) fn is_uncordoned(self) -> bool {
        self.uncordons > 0 || self.is_given_back
    }
}

impl Past {
    pub(crate) fn observe(&mut self, fact: &Fact, clusters: &Clusters, clock: Clock) {
        let now = clock.now();
        match fact {
            Fact::PodBound { uid, node, app } => {
                let instance = clusters.instance_at(node).unwrap_or_default().to_owned();
                let pod = PodPast { instance, node: node.clone(), app: *app, bound: now, ..PodPast::default() };
                self.pods.entry(uid.clone()).or_insert(pod);
            }
            Fact::PodDeleted { uid, grace_s, .. } => self.pod(uid, |pod| {
                pod.given_s = Some(pod.given_s.map_or(*grace_s, |given| given.min(*grace_s)));
            }),
            Fact::PodGone { uid, is_collected } => self.pod(uid, |pod| {
                pod.gone = Some(now);
                pod.is_collected = *is_collected;
            }),
            Fact::LeaveRequested { request: LeaveRequest { uid: Some(uid), method, .. }, .. } => self.pod(uid, |pod| {
                pod.is_requested = true;
                if *method == Method::Evict {
                    pod.first_eviction.get_or_insert(now);
                }
            }),
            Fact::Person { command: Command::Uncordon | Command::Recordon, instance, .. } => {
                self.instances.entry(instance.clone()).or_default().uncordons += 1;
            }
            Fact::Person { command: Command::OptOut, instance, .. } => {
                self.instances.entry(instance.clone()).or_default().opted_out.get_or_insert(now);
            }
            Fact::NodePatched { node, before, after, .. } => self.node(node, clusters, |instance| {
                instance.claimed.get_or_insert(now);
                instance.is_given_back |= is_cordoned(before) && !is_cordoned(after);
            }),
            Fact::NodeMissed { node } => self.node(node, clusters, |instance| {
                instance.missed.get_or_insert(now);
            }),
            Fact::KubeletReports { node } => self.node(node, clusters, |instance| {
                (instance.missed, instance.back) = (None, Some(now));
            }),
            _ => {}
        }
    }

    fn pod(&mut self, uid: &str, record: impl FnOnce(&mut PodPast)) {
        if let Some(pod) = self.pods.get_mut(uid) {
            record(pod);
        }
    }

    fn node(&mut self, node: &NodeId, clusters: &Clusters, record: impl FnOnce(&mut InstancePast)) {
        if let Some(instance) = clusters.instance_at(node) {
            record(self.instances.entry(instance.to_owned()).or_default());
        }
    }

    pub(super) fn instance(&self, id: &str) -> InstancePast {
        self.instances.get(id).copied().unwrap_or_default()
    }

    /// Returns `true` if any node was uncordoned.
    pub(super) fn is_any_uncordoned(&self) -> bool {
        self.instances.values().any(|instance| instance.is_uncordoned())
    }
}

/// Value of the claim annotation of a node.
pub(super) fn claim(node: &Value) -> Option<&str> {
    node["metadata"]["annotations"]["spillway/claim"].as_str()
}
