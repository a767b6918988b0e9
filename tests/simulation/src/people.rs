//! People, who cordon and uncordon nodes, mark them, delete and replace them.

use serde_json::{Value, json};

use crate::draw::{Act, Deed};
use crate::stories::instance_id;
use crate::world::World;

/// Who asks by a person's client.
const KUBECTL: &str = "kubectl";

impl World {
    /// A person does something with a node.
    pub(crate) fn act(&mut self, act: Act) {
        let id = instance_id(act.node);
        let node = self.aws.instances[&id].node.clone();
        if !self.cluster.nodes.contains_key(&node) {
            return;
        }
        self.note(|| format!("somebody does {:?} with {node}", act.what));
        match act.what {
            Deed::Cordon => self.edit_node(&node, KUBECTL, |node| node["spec"]["unschedulable"] = json!(true)),
            Deed::Uncordon => self.uncordon_by_hand(&node),
            Deed::CordonAnew => {
                self.uncordon_by_hand(&node);
                let after = self.ms(100..8000);
                self.later(after, move |world| world.act(Act { what: Deed::Cordon, ..act }));
            }
            Deed::Taint => self.edit_node(&node, KUBECTL, |node| {
                let taint = json!({"key": "gpu", "value": "true", "effect": "NoSchedule"});
                match &mut node["spec"]["taints"] {
                    Value::Array(taints) => taints.push(taint),
                    nothing => *nothing = json!([taint]),
                }
            }),
            Deed::Label => self.edit_node(&node, KUBECTL, |node| {
                node["metadata"]["labels"]["node.kubernetes.io/exclude-from-external-load-balancers"] = json!("true");
            }),
            Deed::OptOut => {
                self.witness.opted_out(&id);
                self.edit_node(&node, KUBECTL, |node| {
                    node["metadata"]["labels"]["spillway/ignore"] = json!("true");
                });
            }
            Deed::Delete => self.remove_node(&node),
            Deed::Replace => {
                self.remove_node(&node);
                let other = instance_id(act.node + 100);
                self.add_instance(&other, &node, "ip-10-0-1-1.ec2.internal");
            }
        }
    }

    fn uncordon_by_hand(&mut self, node: &str) {
        self.witness.uncordoned(node);
        self.edit_node(node, KUBECTL, |node| {
            node["spec"].as_object_mut().expect("it has one").remove("unschedulable");
        });
    }
}
