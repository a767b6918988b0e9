//! Launch hooks: an instance comes into service when its node is Ready, and not before.
//!
//! Reason: whole way.

use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use serde_json::{Value, json};
use spillway_bed::audit::AuditLog;
use spillway_bed::aws::{Hook, Instance, InstanceState};
use spillway_bed::lambda::{Lambda, LambdaOptions, Outcome};
use spillway_bed::{NodeOptions, kubelet, nodes};
use spillway_e2e::{receipt, the_one, world};

/// An instance that a group has launched, and a function that sees to its hook.
struct Stage {
    options: NodeOptions,
    instance: Instance,
    lambda: Lambda,
    /// What the function asked of the API server.
    audit: AuditLog,
    event: Value,
}

impl Stage {
    async fn set(name: &str, hook: Hook, timeout: Duration, more: &[(&str, &str)]) -> Self {
        Self::set_with(name, &[hook], timeout, more).await
    }

    async fn set_with(name: &str, hooks: &[Hook], timeout: Duration, more: &[(&str, &str)]) -> Self {
        let world = world().await;
        let aws = world.aws_side();
        aws.put_group(name, hooks).await.expect("a group");
        let options = NodeOptions { group: Some(name.to_owned()), ..NodeOptions::default() };
        let env = [("SPILLWAY_LAUNCH", "ABANDON"), ("SPILLWAY_HOOKS", "launch,spillway")].iter().chain(more);
        let env = env.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let function_name = name.to_owned();
        let lambda = Lambda::start(world, LambdaOptions { function_name, env, timeout, ..LambdaOptions::default() });
        let lambda = lambda.await.expect("a function");
        // Before the launch: from then on the hook's time runs.
        lambda.initialize().await.expect("it starts");
        let audit = AuditLog::of_user_from_now(&world.audit_log, &format!("assumed-role/spillway-drain/{name}"));
        let audit = audit.expect("the audit log is there");
        let launched = aws.launch(&world.instance_request(&options)).await.expect("an instance");
        Self { options, instance: launched.instance, lambda, audit, event: the_one(launched.delivered) }
    }

    /// The instance becomes a node: silent at first, then Ready.
    async fn join(&self) {
        world().await.register(&self.instance, &self.options).await.expect("it joins");
    }

    async fn boot(&self) {
        let client = world().await.admin();
        kubelet::boot(&client, &self.instance.private_dns_name).await.expect("its kubelet reports");
        nodes::until_ready(&client, &self.instance.private_dns_name).await.expect("it is Ready");
    }

    async fn state(&self) -> InstanceState {
        world().await.aws_side().instance(&self.instance.instance_id).await.expect("it is known")
    }
}

fn ending(outcome: &Outcome) -> (Value, Value) {
    let receipt = receipt(outcome);
    (receipt["ending"].clone(), receipt["reason"].clone())
}

#[tokio::test]
async fn a_launch_hook_is_completed_when_the_node_is_ready_and_kept_waiting_until_then() {
    let hook = Hook::launch("launch").heartbeat_timeout(Duration::from_mins(1));
    let stage = Stage::set("joins", hook, Duration::from_mins(15), &[]).await;
    let (lambda, event) = (stage.lambda.clone(), stage.event.clone());
    let waiting = tokio::spawn(async move { lambda.invoke(event).await });
    until_looked(&stage, 404, 1).await;
    stage.join().await;
    until_watched(&stage).await;
    until_held(&stage, 2).await;
    let action = &stage.state().await.actions[0];
    assert!(action.result.is_none() && action.heartbeats >= 2, "its node is not Ready: {action:?}");

    stage.boot().await;

    let outcome = waiting.await.expect("no panic");
    let node = &stage.instance.private_dns_name;
    assert_eq!(ending(&outcome), (json!("done"), json!(format!("node {node} is Ready: its launch hook is completed"))));
    let instance = stage.state().await;
    assert_eq!(instance.actions[0].result.as_deref(), Some("CONTINUE"));
    assert_eq!(instance.lifecycle_state.as_deref(), Some("InService"));
}

#[tokio::test]
async fn a_node_that_was_taken_out_for_its_root_volume_is_completed_and_given_back_when_it_is_ready() {
    let aws = world().await.aws_side();
    let hooks = [Hook::launch("launch"), Hook::terminate("spillway")];
    let stage = Stage::set_with("root-volume-completed", &hooks, Duration::from_mins(15), &[]).await;
    let (id, node) = (&stage.instance.instance_id, &stage.instance.private_dns_name);
    stage.join().await;
    stage.boot().await;
    assert_eq!(ending(&stage.lambda.invoke(&stage.event).await).0, "done");

    let taken_out = stage.lambda.invoke(the_one(aws.replace_root_volume(id).await.expect("it begins"))).await;
    let booted = aws.wait_for_delivery(id).await.expect("its root volume is replaced").event;
    let given_back = stage.lambda.invoke(booted).await;

    assert_eq!(ending(&taken_out).0, "drained", "{taken_out:#?}");
    let reason = format!(
        "node {node} is Ready: its launch hook is completed; node {node} is given back to use: its root volume is \
         replaced"
    );
    assert_eq!(ending(&given_back), (json!("done"), json!(reason)));
    let node = Api::<Node>::all(world().await.admin()).get(node).await.expect("it is there");
    assert_eq!(node.spec.and_then(|spec| spec.unschedulable), None);
    assert_eq!(stage.state().await.lifecycle_state.as_deref(), Some("InService"));
}

/// Waits until the function watches the node.
async fn until_watched(stage: &Stage) {
    let mut audit = stage.audit.clone();
    let watched = audit.wait_until("a watch of the node", Duration::from_secs(60), |requests| {
        requests.iter().any(|request| request.resource == "nodes" && request.verb == "watch")
    });
    watched.await.unwrap_or_else(|error| panic!("{error}"));
}

/// Waits until the hook has had so many heartbeats, or has run out.
async fn until_held(stage: &Stage, heartbeats: u32) {
    let held = async {
        loop {
            let action = &stage.state().await.actions[0];
            if action.heartbeats >= heartbeats || action.ended_by.is_some() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), held).await.expect("the hook has its heartbeats");
}

/// Waits until the function has looked for the node so often with that answer.
async fn until_looked(stage: &Stage, code: u16, times: usize) {
    let mut audit = stage.audit.clone();
    let looked = audit.wait_until("a look at the node", Duration::from_secs(60), |requests| {
        requests.iter().filter(|request| request.resource == "nodes" && request.code == Some(code)).count() >= times
    });
    looked.await.unwrap_or_else(|error| panic!("{error}"));
}
