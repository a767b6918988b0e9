//! Nodes: what they say, who changes them, and whose the cordon is.

use std::sync::Arc;

use serde_json::{Value, json};

use super::answers::{self, Answer};
use super::cluster::{Kind, Place, Sent};
use super::patch;
use super::request::Asked;
use crate::lambda::AttemptId;
use crate::world::World;

/// Who asks by the client that the product has.
pub(crate) const US: &str = "spillway";

impl World {
    /// A node joins the cluster.
    pub(crate) fn join(&mut self, name: &str, provider_id: &str, boot: &str) {
        let uid = self.cluster.uid();
        let node = json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "uid": uid, "labels": {"kubernetes.io/hostname": name},
                "annotations": {"node.alpha.kubernetes.io/ttl": "0"}},
            "spec": {"providerID": provider_id},
            "status": {"conditions": [{"type": "Ready", "status": "True"}], "nodeInfo": {"bootID": boot}},
        });
        self.change_node(name, "kubelet", node);
    }

    /// A node is as it is now, by that manager's request.
    pub(crate) fn change_node(&mut self, name: &str, manager: &str, mut node: Value) {
        // What is empty is not sent.
        if node["spec"]["taints"].as_array().is_some_and(Vec::is_empty) {
            node["spec"].as_object_mut().expect("it has one").remove("taints");
        }
        let before = self.cluster.nodes.get(name);
        let cordon = |node: &Value| node["spec"]["unschedulable"].as_bool().unwrap_or(false);
        match (before.is_some_and(cordon), cordon(&node)) {
            (false, true) => {
                node["metadata"]["managedFields"] = json!([{
                    "manager": manager, "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
                    "fieldsV1": {"f:spec": {"f:unschedulable": {}}},
                }]);
            }
            (_, false) => node["metadata"]["managedFields"] = json!([]),
            (true, true) => {}
        }
        node["metadata"]["resourceVersion"] = json!(self.cluster.next_version().to_string());
        let place = Place { name: name.to_owned(), namespace: String::new(), node: String::new() };
        self.cluster.put(Kind::Node, name, Sent { place, json: Arc::from(node.to_string()) });
        let takes_pods = !cordon(&node);
        self.cluster.nodes.insert(name.to_owned(), node);
        if takes_pods {
            self.schedule_pending();
        }
    }

    /// Changes a node in place, if it is there.
    pub(crate) fn edit_node(&mut self, name: &str, manager: &str, edit: impl FnOnce(&mut Value)) {
        if let Some(mut node) = self.cluster.nodes.get(name).cloned() {
            edit(&mut node);
            self.change_node(name, manager, node);
        }
    }

    /// A node leaves the cluster.
    pub(crate) fn remove_node(&mut self, name: &str) {
        let Some(mut node) = self.cluster.nodes.remove(name) else { return };
        self.note(|| format!("node {name} leaves the cluster"));
        node["metadata"]["resourceVersion"] = json!(self.cluster.next_version().to_string());
        let place = Place { name: name.to_owned(), namespace: String::new(), node: String::new() };
        self.cluster.drop(Kind::Node, name, Sent { place, json: Arc::from(node.to_string()) });
        self.collect_orphans(name);
    }
}

pub(crate) fn get(world: &mut World, asked: &Asked) -> Answer {
    let Some(node) = world.cluster.nodes.get(&asked.name) else { return answers::not_found("nodes", &asked.name) };
    let answer = Answer::Says(200, node.to_string());
    if world.perhaps(world.plan.node_status) {
        // Its kubelet tells how it is, between a look and what follows from it.
        let (name, after) = (asked.name.clone(), world.ms(0..30));
        world.later(after, move |world| world.edit_node(&name, "kubelet", |_| ()));
    }
    answer
}

pub(crate) fn patch(world: &mut World, attempt: AttemptId, asked: &Asked) -> Answer {
    let name = &asked.name;
    let Some(node) = world.cluster.nodes.get(name).cloned() else { return answers::not_found("nodes", name) };
    match patch::apply(&node, &asked.body) {
        Err(why) => answers::invalid(name, &why),
        Ok(patched) => {
            let manager = asked.parameter("fieldManager").unwrap_or("nobody").to_owned();
            world.witness_patch(attempt, name, &node, &patched);
            world.change_node(name, &manager, patched);
            Answer::Says(200, world.cluster.nodes[name].to_string())
        }
    }
}
