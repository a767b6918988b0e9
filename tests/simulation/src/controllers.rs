//! What happens in the cluster by itself: pods that are missing are replaced, scheduled and started; kubelets let pods exit
//! within their grace; budgets are counted; a node is missed, and what was on it collected.

use std::time::Duration;

use serde_json::json;

use crate::api_server::pods::{Budget, Pod};
use crate::draw::Owner;
use crate::world::World;

/// How long the control plane puts up with a kubelet that says nothing.
const MISSED_AFTER: std::ops::Range<u64> = 40_000..50_000;

/// The name of a pod that has the same one as the pod before it.
fn stateful(app: usize, ordinal: usize) -> String {
    format!("app-{app}-{ordinal}")
}

impl World {
    /// Makes the pods that an app lacks, in a while.
    pub(crate) fn replace_missing(&mut self, app: usize) {
        if matches!(self.plan.apps[app].owner, Owner::ReplicaSet | Owner::StatefulSet) {
            let after = self.ms(50..1500);
            self.later(after, move |world| world.replace_now(app));
        }
    }

    fn replace_now(&mut self, app: usize) {
        let of_app = self.cluster.pods.values().filter(|pod| pod.app == app);
        let missing: Vec<Option<usize>> = if self.plan.apps[app].owner == Owner::StatefulSet {
            let names: Vec<_> = of_app.map(|pod| pod.name.clone()).collect();
            (0..self.plan.apps[app].pods).filter(|at| !names.contains(&stateful(app, *at))).map(Some).collect()
        } else {
            let there = of_app.filter(|pod| pod.deletion.is_none()).count();
            (there..self.plan.apps[app].pods).map(|_| None).collect()
        };
        for ordinal in missing {
            let uid = self.make_pod(app, ordinal, None);
            let after = self.ms(20..300);
            self.later(after, move |world| world.schedule(&uid));
        }
    }

    /// A pod of that app is made; on a node, it runs there already. With its UID.
    pub(crate) fn make_pod(&mut self, app: usize, ordinal: Option<usize>, node: Option<String>) -> String {
        let uid = self.cluster.uid();
        let name = ordinal.map_or_else(|| format!("app-{app}-{}", &uid[4..]), |at| stateful(app, at));
        let (created, is_ready) = (self.second(), node.is_some());
        self.note(|| format!("pod {name} ({uid}) is made on {node:?}"));
        self.put_pod(Pod { name, uid: uid.clone(), app, node, created, is_ready, deletion: None, has_stopped: false });
        uid
    }

    /// Looks for places for pods that have none.
    pub(crate) fn schedule_pending(&mut self) {
        let pending: Vec<_> = self.cluster.pods.values().filter(|pod| pod.node.is_none()).cloned().collect();
        for pod in pending {
            let after = self.ms(20..300);
            self.later(after, move |world| world.schedule(&pod.uid));
        }
    }

    /// Binds a pod to a node that takes it.
    fn schedule(&mut self, uid: &str) {
        let Some(pod) = self.cluster.pods.get(uid).filter(|pod| pod.node.is_none()).cloned() else { return };
        let tolerates = self.plan.apps[pod.app].tolerates;
        let takes = |name: &String| {
            let node = &self.cluster.nodes[name];
            let is_ready = node["status"]["conditions"][0]["status"] == "True";
            let is_free = node["spec"]["unschedulable"] != json!(true) && node["spec"]["taints"].is_null();
            is_ready && (tolerates || is_free)
        };
        let places: Vec<String> = self.cluster.nodes.keys().filter(|name| takes(name)).cloned().collect();
        if places.is_empty() {
            return;
        }
        let place = places[self.rng.usize(0..places.len())].clone();
        self.note(|| format!("pod {} ({uid}) is bound to {place}", pod.name));
        self.put_pod(Pod { node: Some(place), ..pod });
        let (after, uid) = (self.ms(300..5000), uid.to_owned());
        self.later(after, move |world| {
            if let Some(pod) = world.cluster.pods.get(&uid).filter(|pod| pod.deletion.is_none()).cloned() {
                world.put_pod(Pod { is_ready: true, ..pod });
            }
        });
    }

    /// The kubelet of a pod that leaves stops it: when it exits by itself, or its grace is over.
    pub(crate) fn kubelet_stops(&mut self, uid: &str) {
        let Some(pod) = self.cluster.pods.get(uid) else { return };
        let Some(deletion) = pod.deletion else { return };
        let within = self.plan.apps[pod.app].exits_after.min(Duration::from_secs(deletion.grace_s));
        let (uid, reports_after) = (uid.to_owned(), self.ms(20..900));
        self.later(within + reports_after, move |world| world.stopped(&uid));
    }

    /// A pod has stopped, if there is a kubelet to say so.
    fn stopped(&mut self, uid: &str) {
        let Some(pod) = self.cluster.pods.get(uid).cloned() else { return };
        let node = pod.node.clone().unwrap_or_default();
        if !self.aws.kubelet_runs(&node) {
            return;
        }
        if !self.plan.apps[pod.app].finalizer || pod.has_stopped {
            return self.drop_pod(uid);
        }
        let deletion = pod.deletion.map(|deletion| crate::api_server::pods::PodDeletion { grace_s: 0, ..deletion });
        self.put_pod(Pod { has_stopped: true, deletion, ..pod });
        let (after, uid) = (self.ms(1000..300_000), uid.to_owned());
        self.later(after, move |world| world.drop_pod(&uid));
    }

    /// Has the budgets of an app counted, in a while.
    pub(crate) fn budgets_look(&mut self, app: usize) {
        if self.plan.apps[app].budgets > 0 {
            let after = self.ms(20..700);
            self.later(after, move |world| world.count_budgets(app));
        }
    }

    /// Counts the budgets of an app.
    pub(crate) fn count_budgets(&mut self, app: usize) {
        let is_healthy = |pod: &&Pod| pod.app == app && pod.is_ready && pod.deletion.is_none();
        let healthy = self.cluster.pods.values().filter(is_healthy).count();
        let min_available = self.plan.apps[app].min_available;
        for number in 0..self.plan.apps[app].budgets {
            let name = format!("budget-{app}-{number}");
            let allowed = healthy.saturating_sub(min_available);
            let known = self.cluster.budgets.get(&name);
            if known.is_none_or(|known| (known.healthy, known.allowed) != (healthy, allowed)) {
                self.put_budget(&name, Budget { app, min_available, healthy, allowed });
            }
        }
    }

    /// The kubelet of a node says nothing any more: the control plane misses it.
    pub(crate) fn miss_kubelet(&mut self, node: &str) {
        let (name, after) = (node.to_owned(), self.ms(MISSED_AFTER));
        self.later(after, move |world| {
            if !world.aws.kubelet_runs(&name) {
                world.note(|| format!("node {name} is missed"));
                world.edit_node(&name, "kube-controller-manager", |node| {
                    node["status"]["conditions"][0]["status"] = json!("Unknown");
                });
            }
        });
    }

    /// The kubelet of a node reports again, from another boot.
    pub(crate) fn kubelet_is_back(&mut self, node: &str, boot: &str) {
        self.note(|| format!("the kubelet of {node} is back"));
        self.edit_node(node, "kubelet", |node| {
            node["status"]["conditions"][0]["status"] = json!("True");
            node["status"]["nodeInfo"]["bootID"] = json!(boot);
        });
        let leaving =
            self.cluster.pods.values().filter(|pod| pod.node.as_deref() == Some(node) && pod.deletion.is_some());
        let leaving: Vec<_> = leaving.map(|pod| pod.uid.clone()).collect();
        for uid in leaving {
            self.stopped(&uid);
        }
    }

    /// What was on a node that is no more is collected.
    pub(crate) fn collect_orphans(&mut self, node: &str) {
        let (name, after) = (node.to_owned(), self.ms(1000..40_000));
        self.later(after, move |world| {
            let on_it = |pod: &&Pod| pod.node.as_ref() == Some(&name);
            let orphans: Vec<_> = world.cluster.pods.values().filter(on_it).map(|pod| pod.uid.clone()).collect();
            if !world.cluster.nodes.contains_key(&name) {
                for uid in orphans {
                    world.drop_pod(&uid);
                }
            }
        });
    }
}
