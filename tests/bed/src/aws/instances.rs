//! An instance's life: run, interrupted, stopped and started by EC2, moved past hooks by Auto Scaling.
//!
//! Each answers what the template's rules made of the events that come of it at once. What comes later, when a hook is
//! completed or an instance goes, is taken by the instance's id ([`Aws::take_deliveries`]).

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use super::shapes::ChangePage;
use super::{Aws, Delivered, Ec2State, Instance, InstanceRequest, InstanceState, Launched};
use crate::error::BedError;

impl Aws {
    /// Runs an instance. In a group that has a launch hook, it waits for that.
    pub async fn run_instance(&self, request: &InstanceRequest) -> Result<Instance, BedError> {
        Ok(self.launch(request).await?.instance)
    }

    /// Runs an instance, and answers the notices of its group's launch hooks too.
    pub async fn launch(&self, request: &InstanceRequest) -> Result<Launched, BedError> {
        self.post("instances", &json!(request)).await
    }

    pub async fn instance(&self, instance_id: &str) -> Result<InstanceState, BedError> {
        self.call(Method::GET, &format!("instances/{instance_id}"), None).await
    }

    /// A load balancer of the cluster has the instance as a target from now on.
    pub async fn register_target(&self, instance_id: &str, cluster: &str) -> Result<(), BedError> {
        self.post("targets", &json!({"instance_id": instance_id, "cluster": cluster})).await
    }

    /// The load balancer has it no more.
    pub async fn deregister_target(&self, instance_id: &str) -> Result<(), BedError> {
        self.call(Method::DELETE, &format!("targets/{instance_id}"), None).await
    }

    /// A spot interruption: the notice now, the instance gone after `window`.
    pub async fn interrupt(&self, instance_id: &str, window: Duration) -> Result<Vec<Delivered>, BedError> {
        let body = json!({"instance_id": instance_id, "in_s": window.as_secs_f64()});
        self.deliveries("interrupt", &body).await
    }

    /// Ends an instance at once, as its owner does with `ec2:TerminateInstances`.
    pub async fn terminate_instance(&self, instance_id: &str) -> Result<(), BedError> {
        self.call(Method::DELETE, &format!("instances/{instance_id}"), None).await
    }

    /// Auto Scaling takes the instance away, past the hooks of its group.
    pub async fn terminate(&self, instance_id: &str) -> Result<Vec<Delivered>, BedError> {
        self.move_past_hooks(instance_id, "terminate").await
    }

    /// Auto Scaling scales in and keeps the instance in the warm pool: past the terminate hooks it is stopped.
    pub async fn return_to_warm_pool(&self, instance_id: &str) -> Result<Vec<Delivered>, BedError> {
        self.move_past_hooks(instance_id, "return to warm pool").await
    }

    /// Auto Scaling scales in and keeps the instance in a warm pool whose instances go on running.
    pub async fn return_to_running_warm_pool(&self, instance_id: &str) -> Result<Vec<Delivered>, BedError> {
        self.move_past_hooks(instance_id, "return to running warm pool").await
    }

    /// Auto Scaling scales out with an instance of the warm pool: it is started, if it does not run, and waits for the
    /// launch hooks.
    pub async fn launch_from_warm_pool(&self, instance_id: &str) -> Result<Vec<Delivered>, BedError> {
        self.move_past_hooks(instance_id, "launch from warm pool").await
    }

    /// An instance refresh gives the instance another root volume: past the terminate hooks it boots again, and then
    /// the launch hooks give notice.
    pub async fn replace_root_volume(&self, instance_id: &str) -> Result<Vec<Delivered>, BedError> {
        self.move_past_hooks(instance_id, "replace root volume").await
    }

    /// EC2 takes the instance through these states, which must follow each other.
    pub async fn change_state(&self, instance_id: &str, states: &[Ec2State]) -> Result<Vec<Delivered>, BedError> {
        self.deliveries("states", &json!({"instance_id": instance_id, "states": states})).await
    }

    pub async fn stop(&self, instance_id: &str) -> Result<Vec<Delivered>, BedError> {
        self.change_state(instance_id, &[Ec2State::Stopping, Ec2State::Stopped]).await
    }

    pub async fn start(&self, instance_id: &str) -> Result<Vec<Delivered>, BedError> {
        self.change_state(instance_id, &[Ec2State::Pending, Ec2State::Running]).await
    }

    /// EC2 sends no event of it.
    pub async fn reboot(&self, instance_id: &str) -> Result<(), BedError> {
        self.post("reboot", &json!({"instance_id": instance_id})).await
    }

    /// EC2 names these scheduled events of the instance, as `DescribeInstanceStatus` describes them, and sends no event of it.
    pub async fn announce(&self, instance_id: &str, events: &[Value]) -> Result<(), BedError> {
        self.post("scheduled-events", &json!({"instance_id": instance_id, "events": events})).await
    }

    /// Waits up to `wait` for what has become of instances since `since`, for their nodes.
    pub async fn changes(&self, since: u64, wait: Duration) -> Result<ChangePage, BedError> {
        let path = format!("changes?since={since}&wait_s={}", wait.as_secs());
        self.call(Method::GET, &path, None).await
    }

    async fn move_past_hooks(&self, instance_id: &str, how: &str) -> Result<Vec<Delivered>, BedError> {
        self.deliveries("moves", &json!({"instance_id": instance_id, "move": how})).await
    }
}
