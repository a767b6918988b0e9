//! Nodes and their kubelets.

use std::time::Duration;

use serde_json::{Value, json};
use spillway_contract::node::{is_cordoned, patched, stored};
use tokio::time::Instant;

use super::answers::{self, ApiAnswer};
use super::request::ApiRequest;
use super::store::Resource;
use super::{Cluster, ClusterEvent};
use crate::fact::Fact;

/// Silence after which the control plane misses a kubelet, in milliseconds.
const MISSED_AFTER: std::ops::Range<u64> = 40_000..50_000;

/// Least time between two status writes of a kubelet. A real one has ten seconds.
const WRITES_EVERY: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Kubelet {
    pub(super) node: String,
    pub(super) runs: bool,
    /// Last status write.
    pub(super) wrote: Option<Instant>,
}

impl Cluster {
    pub(super) fn join(&mut self, name: &str, instance: &str) {
        let uid = self.next_uid();
        let mut node = json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "uid": uid, "labels": {"kubernetes.io/hostname": name},
                "annotations": {"node.alpha.kubernetes.io/ttl": "0"}},
            "spec": {"providerID": format!("aws:///us-east-1a/{instance}")},
            "status": {"conditions": [{"type": "Ready", "status": "True"}], "nodeInfo": {"bootID": format!("{instance}-0")}},
        });
        if self.plan.is_karpenters(instance) {
            node["metadata"]["labels"]["karpenter.sh/nodepool"] = json!("default");
        }
        if self.plan.is_managed(instance) {
            node["metadata"]["labels"]["eks.amazonaws.com/nodegroup"] = json!("blue");
        }
        self.kubelets.insert(instance.to_owned(), Kubelet { node: name.to_owned(), runs: true, wrote: None });
        self.put_node(name, "kubelet", node);
    }

    /// Stores a node as a field manager.
    fn put_node(&mut self, name: &str, manager: &str, node: Value) {
        let node = stored(self.nodes.get(name), node, manager, self.store.version + 1);
        self.store.put(Resource::Node, name, &node);
        let takes_pods = !is_cordoned(&node);
        self.nodes.insert(name.to_owned(), node);
        if takes_pods {
            self.schedule_pending();
        }
    }

    pub(super) fn edit_node(&mut self, name: &str, manager: &str, edit: impl FnOnce(&mut Value)) {
        if let Some(mut node) = self.nodes.get(name).cloned() {
            edit(&mut node);
            self.put_node(name, manager, node);
        }
    }

    /// Removes a node. Its pods are collected later.
    pub(super) fn remove_node(&mut self, name: &str) {
        let Some(node) = self.nodes.remove(name) else { return };
        self.effects.fact(Fact::NodeGone { node: self.id_of(name) });
        self.store.drop(Resource::Node, name, &node);
        let after = self.dice.ms(1000..40_000);
        self.later(after, ClusterEvent::OrphansCollected { node: name.to_owned() });
    }

    pub(super) fn stop_kubelet(&mut self, instance: &str) {
        let kubelet = self.kubelets.get_mut(instance).expect("an instance has a kubelet");
        kubelet.runs = false;
        let node = kubelet.node.clone();
        let after = self.dice.ms(MISSED_AFTER);
        self.later(after, ClusterEvent::KubeletMissed { node });
    }

    pub(super) fn start_kubelet(&mut self, instance: &str, boot: &str) {
        let kubelet = self.kubelets.get_mut(instance).expect("an instance has a kubelet");
        kubelet.runs = true;
        let node = kubelet.node.clone();
        self.effects.fact(Fact::KubeletReports { node: self.id_of(&node) });
        self.edit_node(&node, "kubelet", |node| {
            node["status"]["conditions"][0]["status"] = json!("True");
            node["status"]["nodeInfo"]["bootID"] = json!(boot);
        });
        let leaving = self.pods_on(&node).filter(|pod| pod.deletion.is_some());
        let leaving: Vec<_> = leaving.map(|pod| pod.uid.clone()).collect();
        for uid in leaving {
            self.exit(&uid);
        }
    }

    pub(super) fn miss(&mut self, node: &str) {
        if !self.kubelet_runs(node) {
            self.effects.fact(Fact::NodeMissed { node: self.id_of(node) });
            self.edit_node(node, "kube-controller-manager", |node| {
                node["status"]["conditions"][0]["status"] = json!("Unknown");
            });
        }
    }

    /// Removes the node of an ended instance, as the cloud controller does, unless another instance has its name.
    pub(super) fn forget(&mut self, instance: &str) {
        let node = self.kubelets[instance].node.clone();
        if self.instance_at(&node) == Some(instance) {
            self.remove_node(&node);
        }
    }

    pub(super) fn kubelet_runs(&self, node: &str) -> bool {
        self.kubelets.values().any(|kubelet| kubelet.node == node && kubelet.runs)
    }

    pub(super) fn instance_at(&self, node: &str) -> Option<&str> {
        self.nodes.get(node)?["spec"]["providerID"].as_str()?.rsplit('/').next()
    }

    /// Returns `true` if an instance has a node with a running kubelet.
    pub(super) fn reports(&self, instance: &str) -> bool {
        let kubelet = self.kubelets.get(instance);
        kubelet.is_some_and(|kubelet| kubelet.runs && self.instance_at(&kubelet.node) == Some(instance))
    }

    pub(super) fn get_node(&mut self, request: &ApiRequest) -> ApiAnswer {
        let name = &request.name;
        let Some(node) = self.nodes.get(name) else { return answers::not_found("nodes", name) };
        let mut node = node.clone();
        let attached = self.volumes_attached(name);
        if !attached.is_empty() {
            node["status"]["volumesAttached"] = json!(attached);
        }
        let answer = ApiAnswer::Says(200, node.to_string());
        let now = Instant::now();
        let mut kubelets = self.kubelets.values_mut().filter(|kubelet| kubelet.node == *name && kubelet.runs);
        let writer = kubelets.find(|kubelet| kubelet.wrote.is_none_or(|wrote| wrote + WRITES_EVERY <= now));
        if let Some(writer) = writer
            && self.dice.perhaps(self.plan.node_status)
        {
            // Between a read and a patch of the function.
            writer.wrote = Some(now);
            let after: Duration = self.dice.ms(0..30);
            self.later(after, ClusterEvent::KubeletReports { node: name.clone() });
        }
        answer
    }

    pub(super) fn patch_node(&mut self, request: &ApiRequest) -> ApiAnswer {
        let name = &request.name;
        let Some(before) = self.nodes.get(name).cloned() else { return answers::not_found("nodes", name) };
        match patched(&before, &request.body) {
            Err(why) => answers::invalid(name, &why),
            Ok(after) => {
                self.put_node(name, request.parameter("fieldManager").unwrap_or_default(), after.clone());
                self.effects.fact(Fact::NodePatched { by: request.by, node: self.id_of(name), before, after });
                ApiAnswer::Says(200, self.nodes[name].to_string())
            }
        }
    }
}
