//! A cluster in memory: an API server that answers what the product asks as the real one does, and what controllers and
//! kubelets do by themselves.
//!
//! * `all`: more clusters than one
//! * `request`, `answers`: what is asked, and what the API server says, in its own words
//! * `store`, `watch`: objects and their versions, lists and watches
//! * `nodes`, `pods`: the objects and what may be done with them
//! * `volumes`: what pods have attached to their nodes
//! * `controllers`: what happens by itself
//! * `contract`: a real API server answers that, too

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

/// All that a cluster is.
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
    /// What is attached to nodes, as it is sent, by the UIDs of the pods.
    attachments: BTreeMap<String, Value>,
    /// By their instances.
    kubelets: BTreeMap<String, Kubelet>,
    last_uid: u32,
}

/// What happens in a cluster.
#[derive(Debug)]
pub(crate) enum ClusterEvent {
    /// An instance has a node.
    NodeJoins {
        node: String,
        instance: String,
    },
    /// Somebody changes a node.
    NodeEdited {
        node: String,
        manager: &'static str,
        edit: fn(&mut Value),
    },
    NodeDeleted {
        node: String,
    },
    KubeletStops {
        instance: String,
    },
    KubeletStarts {
        instance: String,
        boot: String,
    },
    /// An instance is no more.
    InstanceEnded {
        instance: String,
    },
    /// A kubelet says how its node is.
    KubeletReports {
        node: String,
    },
    /// A kubelet has said nothing for long.
    KubeletMissed {
        node: String,
    },
    PodsReplaced {
        app: usize,
    },
    PodScheduled {
        uid: String,
    },
    PodReady {
        uid: String,
    },
    PodExits {
        uid: String,
    },
    /// What keeps the object of a pod that has exited lets it go.
    PodFinalized {
        uid: String,
    },
    BudgetsCounted {
        app: usize,
    },
    /// The volume of a pod that has gone may be unmounted.
    VolumeReleased {
        pod: String,
        node: String,
    },
    VolumeDetached {
        pod: String,
    },
    OrphansCollected {
        node: String,
    },
    /// The API server forgets what was before.
    Compacted,
}

impl Cluster {
    /// A cluster without nodes.
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
            // No two objects have the same one, in whichever clusters.
            last_uid: 10_000 * u32::try_from(number).expect("there are few"),
        }
    }

    /// All pods of the plan run on the nodes that there are.
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

    /// Something happens.
    pub(crate) fn happens(&mut self, event: ClusterEvent) -> Effects {
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

    /// Answers a request.
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

    /// The node of that name.
    fn id_of(&self, node: &str) -> NodeId {
        NodeId { cluster: self.number, name: node.to_owned() }
    }

    /// This happens here after a time.
    fn later(&mut self, after: Duration, event: ClusterEvent) {
        self.effects.after(after, (self.number, event));
    }

    /// The pods on the node of that name.
    fn pods_on<'a>(&'a self, node: &'a str) -> impl Iterator<Item = &'a Pod> {
        self.pods.values().filter(move |pod| pod.node.as_deref() == Some(node))
    }

    fn next_uid(&mut self) -> String {
        self.last_uid += 1;
        format!("uid-{:04}", self.last_uid)
    }
}
