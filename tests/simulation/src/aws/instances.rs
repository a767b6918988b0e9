//! Instances and their states.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use super::actions::ActionResult;
use super::{Aws, AwsEvent, Notice};
use crate::cluster::ClusterEvent;
use crate::fact::Fact;
use crate::plan::NodeId;

#[derive(Debug)]
pub(super) struct Instance {
    pub(super) node: NodeId,
    pub(super) dns_name: String,
    /// States with their begins.
    states: Vec<(Instant, &'static str)>,
    /// Number of reboots.
    boots: u32,
}

impl Instance {
    pub(super) fn state(&self) -> &'static str {
        self.was(Instant::now())
    }

    pub(super) fn was(&self, at: Instant) -> &'static str {
        self.states.iter().rfind(|(since, _)| *since <= at).map_or("running", |(_, state)| state)
    }
}

impl Aws {
    pub(super) fn launch(&mut self, id: String, node: NodeId, dns_name: String) {
        let states = vec![(Instant::now(), "running")];
        self.instances.insert(id.clone(), Instance { node: node.clone(), dns_name, states, boots: 0 });
        self.effects.now((node.cluster, ClusterEvent::NodeJoins { node: node.name, instance: id }));
    }

    pub(super) fn state(&self, id: &str) -> &'static str {
        self.instances[id].state()
    }

    /// Changes the state of an instance, with a notice.
    pub(super) fn change_state(&mut self, id: &str, state: &'static str, delay: Duration) {
        self.effects.fact(Fact::InstanceState { instance: id.to_owned(), state });
        self.instances.get_mut(id).expect("a known instance").states.push((Instant::now(), state));
        self.notify(&Notice {
            source: "aws.ec2",
            detail_type: "EC2 Instance State-change Notification",
            detail: json!({"instance-id": id, "state": state}),
            delay,
        });
    }

    pub(super) fn stop(&mut self, id: &str, starts_after: Option<Duration>, delay: Duration) {
        if matches!(self.state(id), "running" | "stopping") {
            self.stop_kubelet(id);
            self.change_state(id, "stopped", delay);
        }
        if let Some(after) = starts_after {
            self.effects.after(after, AwsEvent::Starts { id: id.to_owned(), delay });
        }
    }

    /// Starts a stopped instance. Returns `true` if it was stopped.
    pub(super) fn start(&mut self, id: &str, delay: Duration) -> bool {
        let is_stopped = self.state(id) == "stopped";
        if is_stopped {
            self.change_state(id, "running", delay);
            let after = self.dice.ms(10_000..90_000);
            self.effects.after(after, AwsEvent::Boots { id: id.to_owned() });
        }
        is_stopped
    }

    pub(super) fn reboot(&mut self, id: String) {
        if self.state(&id) == "running" {
            self.stop_kubelet(&id);
            let after = self.dice.ms(20_000..90_000);
            self.effects.after(after, AwsEvent::Boots { id });
        }
    }

    pub(super) fn boot(&mut self, id: String) {
        let instance = self.instances.get_mut(&id).expect("a known instance");
        if instance.state() == "running" {
            instance.boots += 1;
            let boot = format!("{id}-{}", instance.boots);
            self.effects.now((instance.node.cluster, ClusterEvent::KubeletStarts { instance: id, boot }));
        }
    }

    pub(super) fn terminate(&mut self, id: &str, delay: Duration) {
        if matches!(self.state(id), "shutting-down" | "terminated") {
            return;
        }
        let waiting = self.actions.values_mut().filter(|action| action.instance == id && action.result.is_none());
        waiting.for_each(|action| action.result = Some(ActionResult::InstanceGone));
        self.change_state(id, "shutting-down", delay);
        self.stop_kubelet(id);
        let after = self.dice.ms(1000..60_000);
        self.effects.after(after, AwsEvent::Ends { id: id.to_owned(), delay });
    }

    /// Ends an instance, and its node some time later.
    pub(super) fn end(&mut self, id: String, delay: Duration) {
        self.change_state(&id, "terminated", delay);
        let after = self.dice.ms(1000..90_000);
        self.effects.after(after, (self.cluster_of(&id), ClusterEvent::InstanceEnded { instance: id }));
    }

    fn stop_kubelet(&mut self, id: &str) {
        self.effects.now((self.cluster_of(id), ClusterEvent::KubeletStops { instance: id.to_owned() }));
    }

    pub(super) fn cluster_of(&self, id: &str) -> usize {
        self.instances[id].node.cluster
    }
}
