//! A cluster in memory: an API server with the answers of a real one, controllers and kubelets.
//!
//! * `all`: several clusters
//! * `request`, `answers`: requests and answers of the API server
//! * `store`, `watch`: objects and their versions, lists and watches
//! * `nodes`, `pods`, `volumes`: objects
//! * `controllers`: controllers, scheduler and kubelets
//! * `contract`: comparison with a real API server

mod all;
mod answers;
#[cfg(test)]
mod contract;
mod controllers;
mod nodes;
mod pods;
mod request;
mod store;
mod volumes;
mod watch;

use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::clock::Clock;
use crate::dice::Dice;
use crate::event::Effects;
use crate::plan::{NodeId, Owner, Plan};
pub(crate) use all::Clusters;
pub(crate) use answers::{ApiAnswer, forbidden, refusal, unauthorized, webhook_down};
use nodes::Kubelet;
use pods::Budget;
pub(crate) use pods::Pod;
pub(crate) use request::ApiRequest;
use request::Verb;
use store::{Resource, Store};
pub(crate) use watch::{Next, Watch};

#[derive(Debug)]
pub(crate) struct Cluster {
    number: usize,
    plan: Arc<Plan>,
    clock: Clock,
    dice: Dice,
    effects: Effects,
    store: Store,
    nodes: BTreeMap<String, Value>,
    pods: BTreeMap<String, Pod>,
    budgets: BTreeMap<String, Budget>,
    /// Objects of attached volumes by the UIDs of their pods.
    attachments: BTreeMap<String, Value>,
    /// Kubelets by instance.
    kubelets: BTreeMap<String, Kubelet>,
    last_uid: u32,
}

/// An event of a cluster. `PodFinalized` removes a pod's finalizer; `Compacted` removes old versions.
#[derive(Debug)]
pub(crate) enum ClusterEvent {
    NodeJoins { node: String, instance: String },
    NodeEdited { node: String, manager: &'static str, edit: fn(&mut Value) },
    NodeDeleted { node: String },
    KubeletStops { instance: String },
    KubeletStarts { instance: String, boot: String },
    InstanceEnded { instance: String },
    KubeletReports { node: String },
    KubeletMissed { node: String },
    PodsReplaced { app: usize },
    PodScheduled { uid: String },
    PodReady { uid: String },
    PodExits { uid: String },
    PodFinalized { uid: String },
    BudgetsCounted { app: usize },
    VolumeReleased { pod: String, node: String },
    VolumeDetached { pod: String },
    OrphansCollected { node: String },
    Compacted,
}

impl Cluster {
    fn of(number: usize, plan: Arc<Plan>, clock: Clock, seed: u64) -> Self {
        Self {
            number,
            plan,
            clock,
            dice: Dice::of(seed + number as u64, "cluster"),
            effects: Effects::default(),
            store: Store::default(),
            nodes: BTreeMap::new(),
            pods: BTreeMap::new(),
            budgets: BTreeMap::new(),
            attachments: BTreeMap::new(),
            kubelets: BTreeMap::new(),
            // UIDs are unique in all clusters.
            last_uid: 10_000 * u32::try_from(number).expect("two clusters"),
        }
    }

    /// Creates the pods of the plan, running.
    pub(crate) fn populate(&mut self) -> Effects {
        let (plan, nodes) = (Arc::clone(&self.plan), self.nodes.keys().cloned().collect::<Vec<_>>());
        let own = self.number;
        for (app, planned) in plan.apps.iter().enumerate().filter(|(_, app)| app.cluster == own) {
            let pods = if planned.owner == Owner::DaemonSet { nodes.len() } else { planned.pods };
            for number in 0..pods {
                let at =
                    if planned.on_first_node && planned.owner != Owner::DaemonSet { 0 } else { number % nodes.len() };
                let ordinal = (planned.owner == Owner::StatefulSet).then_some(number);
                self.create_pod(app, ordinal, Some(nodes[at].clone()));
            }
            self.count_budgets(app);
        }
        mem::take(&mut self.effects)
    }

    pub(crate) fn handle(&mut self, event: ClusterEvent) -> Effects {
        match event {
            ClusterEvent::NodeJoins { node, instance } => self.join(&node, &instance),
            ClusterEvent::NodeEdited { node, manager, edit } => self.edit_node(&node, manager, edit),
            ClusterEvent::NodeDeleted { node } => self.remove_node(&node),
            ClusterEvent::KubeletStops { instance } => self.stop_kubelet(&instance),
            ClusterEvent::KubeletStarts { instance, boot } => self.start_kubelet(&instance, &boot),
            ClusterEvent::InstanceEnded { instance } => self.forget(&instance),
            ClusterEvent::KubeletReports { node } => self.edit_node(&node, "kubelet", |_| ()),
            ClusterEvent::KubeletMissed { node } => self.miss(&node),
            ClusterEvent::PodsReplaced { app } => self.replace(app),
            ClusterEvent::PodScheduled { uid } => self.schedule(&uid),
            ClusterEvent::PodReady { uid } => self.make_ready(&uid),
            ClusterEvent::PodExits { uid } => self.exit(&uid),
            ClusterEvent::PodFinalized { uid } => self.drop_pod(&uid),
            ClusterEvent::BudgetsCounted { app } => self.count_budgets(app),
            ClusterEvent::VolumeReleased { pod, node } => self.release(pod, &node),
            ClusterEvent::VolumeDetached { pod } => self.detach(&pod),
            ClusterEvent::OrphansCollected { node } => self.collect_orphans(&node),
            ClusterEvent::Compacted => self.store.compact(),
        }
        mem::take(&mut self.effects)
    }

    pub(crate) fn answer(&mut self, request: &ApiRequest) -> (ApiAnswer, Effects) {
        let answer = match (request.resource, request.verb) {
            (None, _) => answers::not_found_path(),
            (Some(resource), Verb::List) => watch::list(&self.store, resource, request),
            (Some(resource), Verb::Watch) => self.watch(resource, request),
            (Some(Resource::Node), Verb::Get) => self.get_node(request),
            (Some(Resource::Node), Verb::Patch) => self.patch_node(request),
            (Some(Resource::Pod), Verb::Evict) => self.evict(request),
            (Some(Resource::Pod), Verb::Delete) => self.delete(request),
            (Some(Resource::Pod), Verb::PatchStatus) => self.patch_pod_status(request),
            (Some(Resource::Event), Verb::Create) => ApiAnswer::Says(201, request.body.to_string()),
            (Some(Resource::VolumeAttachment), Verb::Get) => self.get_attachment(&request.name),
            (Some(Resource::PersistentVolume), Verb::Get) => self.get_volume(&request.name),
            (Some(_), Verb::Get) => answers::not_found(request.plural(), &request.name),
            (Some(_), _) => answers::not_allowed(),
        };
        (answer, mem::take(&mut self.effects))
    }

    fn id_of(&self, node: &str) -> NodeId {
        NodeId { cluster: self.number, name: node.to_owned() }
    }

    fn later(&mut self, after: Duration, event: ClusterEvent) {
        self.effects.after(after, (self.number, event));
    }

    fn pods_on<'a>(&'a self, node: &'a str) -> impl Iterator<Item = &'a Pod> {
        self.pods.values().filter(move |pod| pod.node.as_deref() == Some(node))
    }

    fn next_uid(&mut self) -> String {
        self.last_uid += 1;
        format!("uid-{:04}", self.last_uid)
    }
}
