//! Launch hooks: an instance comes into service when its node is Ready, and not before.
//!
//! Reason: whole way.

use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use serde_json::Value;
use spillway_bed::audit::{AuditLog, Request};
use spillway_bed::aws::{Hook, Instance, InstanceState};
use spillway_bed::lambda::{Lambda, Outcome};
use spillway_bed::{NodeOptions, kubelet, nodes};
use spillway_e2e::{WAIT, ended, function, the_one, until, user, world};

/// A launched instance of a group, and a function for its hook.
struct Launched {
    options: NodeOptions,
    instance: Instance,
    lambda: Lambda,
    audit: AuditLog,
    event: Value,
}

impl Launched {
    async fn set(name: &str, hooks: &[Hook]) -> Self {
        let world = world().await;
        let aws = world.aws_side();
        aws.put_group(name, hooks).await.expect("the group is new");
        let options = NodeOptions::in_group(name);
        let env = [("SPILLWAY_LAUNCH", "ABANDON"), ("SPILLWAY_HOOKS", "launch,spillway")];
        let lambda = function(world, name, &env).await;
        // Before the launch, which starts the hook's time.
        lambda.initialize().await.expect("the function starts");
        let audit = AuditLog::of_user_from_now(&world.audit_log, &user(name)).expect("the audit log exists");
        let launched = aws.launch(&world.instance_request(&options)).await.expect("an instance");
        Self { options, instance: launched.instance, lambda, audit, event: the_one(launched.delivered) }
    }

    /// Makes the instance a node with a silent kubelet.
    async fn join(&self) {
        world().await.register(&self.instance, &self.options).await.expect("the node joins");
    }

    /// Makes the node Ready.
    async fn boot(&self) {
        let client = world().await.admin();
        kubelet::boot(&client, &self.instance.private_dns_name).await.expect("the kubelet reports");
        nodes::until_ready(&client, &self.instance.private_dns_name).await.expect("the node is Ready");
    }

    async fn state(&self) -> InstanceState {
        world().await.aws_side().instance(&self.instance.instance_id).await.expect("the instance is known")
    }

    async fn until_requested(&self, what: &str, wanted: impl Fn(&Request) -> bool) {
        let made = |requests: &[Request]| requests.iter().any(|made| made.resource == "nodes" && wanted(made));
        let waited = self.audit.clone().wait_until(what, WAIT, made).await;
        waited.unwrap_or_else(|error| panic!("{error}"));
    }
}

/// The node is Ready after some seconds.
fn assert_ready(outcome: &Outcome, node: &str, end: &str) {
    let (ending, reason) = ended(outcome);
    let seconds = reason.strip_prefix(&format!("node {node} is Ready after ")).and_then(|rest| rest.strip_suffix(end));
    assert!(ending == "done" && seconds.is_some_and(|seconds| seconds.parse::<u32>().is_ok()), "{reason}");
}

#[tokio::test]
async fn launch_hook_is_held_until_its_node_is_ready() {
    let hook = Hook::launch("launch").heartbeat_timeout(Duration::from_mins(1));
    let launched = Launched::set("joins", &[hook]).await;
    let (lambda, event) = (launched.lambda.clone(), launched.event.clone());
    let waiting = tokio::spawn(async move { lambda.invoke(event).await });
    launched.until_requested("a get without a node", |made| made.code == Some(404)).await;
    launched.join().await;
    launched.until_requested("a watch of the node", |made| made.verb == "watch").await;
    until("two heartbeats", async || launched.state().await.actions[0].heartbeats >= 2).await;
    let action = launched.state().await.actions.remove(0);
    assert_eq!((&action.result, &action.ended_by), (&None, &None), "the node is not Ready: {action:?}");

    launched.boot().await;

    let outcome = waiting.await.expect("no panic");
    assert_ready(&outcome, &launched.instance.private_dns_name, " s: its launch hook is completed");
    let state = launched.state().await;
    assert_eq!(state.actions[0].result.as_deref(), Some("CONTINUE"));
    assert_eq!(state.lifecycle_state.as_deref(), Some("InService"));
}

#[tokio::test]
async fn node_with_a_replaced_root_volume_is_given_back_when_ready() {
    let aws = world().await.aws_side();
    let hooks = [Hook::launch("launch"), Hook::terminate("spillway")];
    let launched = Launched::set("root-volume-completed", &hooks).await;
    let (id, node) = (&launched.instance.instance_id, &launched.instance.private_dns_name);
    launched.join().await;
    launched.boot().await;
    assert_eq!(ended(&launched.lambda.invoke(&launched.event).await).0, "done");

    let taken_out = launched.lambda.invoke(the_one(aws.replace_root_volume(id).await.expect("a notice"))).await;
    let booted = aws.wait_for_delivery(id).await.expect("a notice of the launch hook").event;
    let given_back = launched.lambda.invoke(booted).await;

    assert_eq!(ended(&taken_out).0, "drained", "{taken_out:#?}");
    let reason =
        format!(" s: its launch hook is completed; node {node} is given back to use: its root volume is replaced");
    assert_ready(&given_back, node, &reason);
    let node = Api::<Node>::all(world().await.admin()).get(node).await.expect("the node exists");
    assert_eq!(node.spec.and_then(|spec| spec.unschedulable), None);
    assert_eq!(launched.state().await.lifecycle_state.as_deref(), Some("InService"));
}
