//! Controllers, scheduler and kubelets: replace, schedule, start and stop pods, and count budgets.

use serde_json::json;

use super::pods::{Budget, Pod, PodDeletion};
use super::{Cluster, ClusterEvent};
use crate::fact::Fact;
use crate::plan::Owner;

/// Name of a StatefulSet's pod.
fn stateful(app: &str, ordinal: usize) -> String {
    format!("{app}-{ordinal}")
}

impl Cluster {
    /// Creates the missing pods of an app, after a while.
    pub(super) fn replace_missing(&mut self, app: usize) {
        if matches!(self.plan.apps[app].owner, Owner::ReplicaSet | Owner::StatefulSet) {
            let after = self.dice.ms(50..1500);
            self.later(after, ClusterEvent::PodsReplaced { app });
        }
    }

    /// Creates the missing pods of an app.
    pub(super) fn replace(&mut self, app: usize) {
        let of_app = self.pods.values().filter(|pod| pod.app == app);
        let missing: Vec<Option<usize>> = if self.plan.apps[app].owner == Owner::StatefulSet {
            let (names, of) = (of_app.map(|pod| pod.name.clone()).collect::<Vec<_>>(), self.plan.app_name(app));
            (0..self.plan.apps[app].pods).filter(|at| !names.contains(&stateful(&of, *at))).map(Some).collect()
        } else {
            let there = of_app.filter(|pod| pod.deletion.is_none()).count();
            (there..self.plan.apps[app].pods).map(|_| None).collect()
        };
        for ordinal in missing {
            let uid = self.create_pod(app, ordinal, None);
            self.have_scheduled(uid);
        }
    }

    /// Creates a pod; on a node, it runs already. Returns its UID.
    pub(super) fn create_pod(&mut self, app: usize, ordinal: Option<usize>, node: Option<String>) -> String {
        let uid = self.next_uid();
        let of = self.plan.app_name(app);
        let name = ordinal.map_or_else(|| format!("{of}-{}", &uid[4..]), |at| stateful(&of, at));
        let (created, has_started) = (self.clock.second(), node.is_some());
        self.effects.fact(Fact::PodCreated { name: name.clone(), uid: uid.clone() });
        if let Some(node) = &node {
            self.effects.fact(Fact::PodBound { uid: uid.clone(), node: self.id_of(node), app });
        }
        let pod = Pod {
            name,
            uid: uid.clone(),
            app,
            node,
            created,
            has_started,
            is_ready: has_started,
            deletion: None,
            is_disruption_target: false,
            has_stopped: false,
            is_collected: false,
        };
        self.attach(&pod);
        self.put_pod(pod);
        uid
    }

    pub(super) fn schedule_pending(&mut self) {
        let pending = self.pods.values().filter(|pod| pod.node.is_none());
        let pending: Vec<_> = pending.map(|pod| pod.uid.clone()).collect();
        for uid in pending {
            self.have_scheduled(uid);
        }
    }

    fn have_scheduled(&mut self, uid: String) {
        let after = self.dice.ms(20..300);
        self.later(after, ClusterEvent::PodScheduled { uid });
    }

    /// Binds a pod to any node that accepts it.
    pub(super) fn schedule(&mut self, uid: &str) {
        let Some(pod) = self.pods.get(uid).filter(|pod| pod.node.is_none()).cloned() else { return };
        let (app, tolerates) = (pod.app, self.plan.apps[pod.app].tolerates);
        let takes = |name: &&String| {
            let node = &self.nodes[*name];
            let is_ready = node["status"]["conditions"][0]["status"] == "True";
            let is_free = node["spec"]["unschedulable"] != json!(true) && node["spec"]["taints"].is_null();
            is_ready && (tolerates || is_free)
        };
        let places: Vec<String> = self.nodes.keys().filter(takes).cloned().collect();
        if places.is_empty() {
            return;
        }
        let node = places[self.dice.below(places.len())].clone();
        self.effects.fact(Fact::PodBound { uid: uid.to_owned(), node: self.id_of(&node), app });
        let pod = Pod { node: Some(node), ..pod };
        self.attach(&pod);
        self.put_pod(pod);
        let after = self.dice.ms(300..5000);
        self.later(after, ClusterEvent::PodReady { uid: uid.to_owned() });
    }

    pub(super) fn make_ready(&mut self, uid: &str) {
        if let Some(pod) = self.pods.get(uid).filter(|pod| pod.deletion.is_none()).cloned() {
            self.put_pod(Pod { has_started: true, is_ready: true, ..pod });
        }
    }

    /// Reports the exit of a pod, if its kubelet runs.
    pub(super) fn exit(&mut self, uid: &str) {
        let Some(pod) = self.pods.get(uid).cloned() else { return };
        if !self.kubelet_runs(pod.node.as_deref().unwrap_or_default()) {
            return;
        }
        if !self.plan.apps[pod.app].finalizer || pod.has_stopped {
            return self.drop_pod(uid);
        }
        let deletion = pod.deletion.map(|deletion| PodDeletion { grace_s: 0, ..deletion });
        let pod = Pod { has_stopped: true, deletion, ..pod };
        self.release_volume(&pod);
        self.put_pod(pod);
        let after = self.dice.ms(1000..300_000);
        self.later(after, ClusterEvent::PodFinalized { uid: uid.to_owned() });
    }

    /// Counts the budgets of an app, after a while.
    pub(super) fn recount_budgets(&mut self, app: usize) {
        if self.plan.apps[app].budgets > 0 {
            let after = self.dice.ms(20..700);
            self.later(after, ClusterEvent::BudgetsCounted { app });
        }
    }

    pub(super) fn count_budgets(&mut self, app: usize) {
        let is_healthy = |pod: &&Pod| pod.app == app && pod.is_ready && pod.deletion.is_none();
        let healthy = self.pods.values().filter(is_healthy).count();
        let desired = self.plan.apps[app].needs;
        for number in 0..self.plan.apps[app].budgets {
            let name = format!("budget-{app}-{number}");
            let allowed = healthy.saturating_sub(desired);
            let known = self.budgets.get(&name);
            if known.is_none_or(|known| (known.healthy, known.allowed) != (healthy, allowed)) {
                self.put_budget(&name, Budget { app, desired, healthy, allowed });
            }
        }
    }

    /// Collects the pods of a removed node.
    pub(super) fn collect_orphans(&mut self, node: &str) {
        if !self.nodes.contains_key(node) {
            let orphans: Vec<_> = self.pods_on(node).cloned().collect();
            for pod in orphans {
                let uid = pod.uid.clone();
                let deletion = Some(PodDeletion { by: self.clock.second(), grace_s: 0 });
                self.put_pod(Pod { is_collected: true, deletion, ..pod });
                self.drop_pod(&uid);
            }
        }
    }
}
