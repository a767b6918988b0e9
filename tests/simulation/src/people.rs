//! Changes of nodes by people.

use std::mem;

use serde_json::{Value, json};

use crate::aws::AwsEvent;
use crate::cluster::{ClusterEvent, Clusters};
use crate::dice::Dice;
use crate::event::Effects;
use crate::fact::Fact;
use crate::plan::{Command, ManualChange, NodeId, instance_id};

/// Field manager of a person's client.
const KUBECTL: &str = "kubectl";

#[derive(Debug)]
pub(crate) struct People {
    dice: Dice,
    effects: Effects,
}

impl People {
    pub(crate) fn of(seed: u64) -> Self {
        Self { dice: Dice::of(seed, "people"), effects: Effects::default() }
    }

    pub(crate) fn handle(&mut self, change: ManualChange, node: NodeId, clusters: &Clusters) -> Effects {
        if clusters.node(&node).is_some() {
            let (command, instance) = (change.command, instance_id(change.node));
            self.effects.fact(Fact::Person { command, node: node.clone(), instance });
            self.carry_out(change, node);
        }
        mem::take(&mut self.effects)
    }

    fn carry_out(&mut self, change: ManualChange, node: NodeId) {
        match change.command {
            Command::Cordon => self.edit(node, |node| node["spec"]["unschedulable"] = json!(true)),
            Command::Uncordon => self.uncordon(node),
            Command::Recordon => {
                self.uncordon(node);
                let after = self.dice.ms(100..8000);
                self.effects.after(after, ManualChange { command: Command::Cordon, ..change });
            }
            Command::Taint => self.edit(node, |node| {
                let taint = json!({"key": "gpu", "value": "true", "effect": "NoSchedule"});
                match &mut node["spec"]["taints"] {
                    Value::Array(taints) => taints.push(taint),
                    nothing => *nothing = json!([taint]),
                }
            }),
            Command::Label => self.edit(node, |node| {
                node["metadata"]["labels"]["node.kubernetes.io/exclude-from-external-load-balancers"] = json!("true");
            }),
            Command::OptOut => self.edit(node, |node| {
                node["metadata"]["labels"]["spillway/ignore"] = json!("true");
            }),
            Command::Delete => self.effects.now((node.cluster, ClusterEvent::NodeDeleted { node: node.name })),
            Command::Replace => {
                self.effects.now((node.cluster, ClusterEvent::NodeDeleted { node: node.name.clone() }));
                let dns_name = "ip-10-0-1-1.ec2.internal".to_owned();
                let boots = self.dice.ms(6000..30_000);
                self.effects.after(boots, AwsEvent::Launches { id: instance_id(change.node + 100), node, dns_name });
            }
        }
    }

    fn uncordon(&mut self, node: NodeId) {
        self.edit(node, |node| {
            node["spec"].as_object_mut().expect("a node has a spec").remove("unschedulable");
        });
    }

    fn edit(&mut self, node: NodeId, edit: fn(&mut Value)) {
        self.effects.now((node.cluster, ClusterEvent::NodeEdited { node: node.name, manager: KUBECTL, edit }));
    }
}
