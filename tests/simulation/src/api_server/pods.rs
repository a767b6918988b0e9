//! Pods and their budgets as objects: what is true of them, and how they are sent.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::cluster::{Kind, Place, Sent};
use crate::draw::Owner;
use crate::world::World;

/// The namespace of all pods.
pub(crate) const NAMESPACE: &str = "shop";

/// A pod.
#[derive(Debug, Clone)]
pub(crate) struct Pod {
    pub(crate) name: String,
    pub(crate) uid: String,
    /// Which of the plan's apps it is of.
    pub(crate) app: usize,
    pub(crate) node: Option<String>,
    pub(crate) created: Timestamp,
    pub(crate) is_ready: bool,
    pub(crate) deletion: Option<PodDeletion>,
    /// Nothing of it runs any more; only its object is there.
    pub(crate) has_stopped: bool,
}

/// That a pod is being deleted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PodDeletion {
    pub(crate) by: Timestamp,
    pub(crate) grace_s: u64,
}

/// A budget of an app's pods.
#[derive(Debug, Clone)]
pub(crate) struct Budget {
    pub(crate) app: usize,
    pub(crate) min_available: usize,
    pub(crate) healthy: usize,
    pub(crate) allowed: usize,
}

impl World {
    /// A pod is as it is now.
    pub(crate) fn put_pod(&mut self, pod: Pod) {
        if let Some(node) = &pod.node {
            self.witness_place(&pod.uid, node, pod.app);
        }
        let sent = self.sent_pod(&pod);
        self.cluster.put(Kind::Pod, &pod.uid, sent);
        let app = pod.app;
        self.cluster.pods.insert(pod.uid.clone(), pod);
        self.budgets_look(app);
    }

    /// A pod's object is no more.
    pub(crate) fn drop_pod(&mut self, uid: &str) {
        let Some(pod) = self.cluster.pods.remove(uid) else { return };
        self.note(|| format!("pod {} ({uid}) is gone", pod.name));
        let now = self.now();
        self.witness.gone(uid, now);
        let sent = self.sent_pod(&pod);
        self.cluster.drop(Kind::Pod, uid, sent);
        self.budgets_look(pod.app);
        self.replace_missing(pod.app);
    }

    /// A pod's object, or as it last was.
    pub(crate) fn last_seen(&self, pod: &Pod) -> String {
        let there = self.cluster.sent.get(&(Kind::Pod, pod.uid.clone()));
        there.map_or_else(|| self.pod_json(pod, self.cluster.version).to_string(), |sent| sent.json.to_string())
    }

    fn sent_pod(&mut self, pod: &Pod) -> Sent {
        let version = self.cluster.next_version();
        let place = Place {
            name: pod.name.clone(),
            namespace: NAMESPACE.to_owned(),
            node: pod.node.clone().unwrap_or_default(),
        };
        Sent { place, json: Arc::from(self.pod_json(pod, version).to_string()) }
    }

    fn pod_json(&self, pod: &Pod, version: u64) -> Value {
        let app = &self.plan.apps[pod.app];
        let mut metadata = json!({"name": pod.name, "namespace": NAMESPACE, "uid": pod.uid,
            "resourceVersion": version.to_string(), "creationTimestamp": pod.created});
        let owner = |kind: &str, version: &str| {
            json!([{"apiVersion": version, "kind": kind, "name": "owner", "uid": format!("owner-{}", pod.app),
                "controller": true}])
        };
        match app.owner {
            Owner::StatefulSet => metadata["ownerReferences"] = owner("StatefulSet", "apps/v1"),
            Owner::ReplicaSet => metadata["ownerReferences"] = owner("ReplicaSet", "apps/v1"),
            Owner::DaemonSet => metadata["ownerReferences"] = owner("DaemonSet", "apps/v1"),
            Owner::Mirror | Owner::Nobody => {}
        }
        if app.owner == Owner::Mirror {
            metadata["annotations"] = json!({"kubernetes.io/config.mirror": "file"});
        } else if let Some((key, value)) = app.annotation {
            metadata["annotations"] = json!({key: value});
        }
        if let Some(deletion) = pod.deletion {
            metadata["deletionTimestamp"] = json!(deletion.by);
            metadata["deletionGracePeriodSeconds"] = json!(deletion.grace_s);
        }
        let mut spec = json!({"terminationGracePeriodSeconds": app.grace_s});
        if let Some(node) = &pod.node {
            spec["nodeName"] = json!(node);
        }
        if app.is_critical {
            spec["priorityClassName"] = json!("system-cluster-critical");
        }
        let mut status = json!({"phase": if pod.is_ready { "Running" } else { "Pending" }});
        if pod.node.is_some() {
            status["startTime"] = json!(pod.created);
        }
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status})
    }

    /// A budget is as it is now.
    pub(crate) fn put_budget(&mut self, name: &str, budget: Budget) {
        let version = self.cluster.next_version();
        let json = json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": name, "namespace": NAMESPACE, "uid": format!("uid-{name}"), "generation": 1,
                "resourceVersion": version.to_string()},
            "spec": {"minAvailable": budget.min_available},
            "status": {"observedGeneration": 1, "disruptionsAllowed": budget.allowed, "currentHealthy": budget.healthy,
                "desiredHealthy": budget.min_available, "expectedPods": self.plan.apps[budget.app].pods},
        });
        let place = Place { name: name.to_owned(), namespace: NAMESPACE.to_owned(), node: String::new() };
        self.cluster.put(Kind::Budget, name, Sent { place, json: Arc::from(json.to_string()) });
        self.cluster.budgets.insert(name.to_owned(), budget);
    }
}
