//! Launch hooks: an instance comes into service when its node is Ready, and not before.

use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use spillway_bed::audit::AuditLog;
use spillway_bed::aws::{Fault, Hook, Instance, InstanceState};
use spillway_bed::gateway::{Gateway, Rules};
use spillway_bed::lambda::{Lambda, LambdaOptions, Outcome};
use spillway_bed::proxy::Mode;
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

    /// The node is claimed for a new root volume, and has not rebooted yet.
    async fn take_out_for_its_root_volume(&self) {
        let (nodes, name) = (Api::<Node>::all(world().await.admin()), &self.instance.private_dns_name);
        let boot = nodes::boot_id(&world().await.admin(), name).await.expect("it has one");
        let notice = "root volume replacement";
        let claim = json!({"event": "e-1", "request": "r-1", "notice": notice, "cordoned": true, "boot": boot});
        let annotations = json!({"spillway/claim": claim.to_string()});
        let taken_out = json!({"metadata": {"annotations": annotations}, "spec": {"unschedulable": true}});
        let ours = PatchParams { field_manager: Some("spillway".to_owned()), ..PatchParams::default() };
        nodes.patch(name, &ours, &Patch::Merge(taken_out)).await.expect("it is there");
    }

    /// The notice, had the group replaced the root volume.
    fn root_volume_replaced(&self) -> Value {
        let mut event = self.event.clone();
        event["detail"]["Action"] = json!("ReplaceRootVolume");
        event
    }

    async fn continuation(&self) -> Value {
        let delivered = world().await.aws_side().take_deliveries(self.lambda.access_key_id()).await;
        the_one(delivered.expect("the AWS side is there"))
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
    let hook = Hook::launch("launch").heartbeat_timeout(Duration::from_secs(10));
    let stage = Stage::set("joins", hook, Duration::from_mins(15), &[]).await;
    let (lambda, event) = (stage.lambda.clone(), stage.event.clone());
    let waiting = tokio::spawn(async move { lambda.invoke(event).await });
    until_looked(&stage, 404, 1).await;
    stage.join().await;
    until_watched(&stage).await;
    until_held(&stage, 3).await;
    let action = &stage.state().await.actions[0];
    assert!(action.result.is_none() && action.heartbeats >= 3, "its node is not Ready: {action:?}");

    stage.boot().await;

    let outcome = waiting.await.expect("no panic");
    let node = &stage.instance.private_dns_name;
    assert_eq!(ending(&outcome), (json!("done"), json!(format!("node {node} is Ready: its launch hook is completed"))));
    let instance = stage.state().await;
    assert_eq!(instance.actions[0].result.as_deref(), Some("CONTINUE"));
    assert_eq!(instance.lifecycle_state.as_deref(), Some("InService"));
}

/// EC2's answers are "eventually consistent".
#[tokio::test]
async fn an_instance_that_ec2_does_not_know_yet_is_asked_for_again() {
    let env = [("SPILLWAY_HOOKS_WITHOUT_NODE", "CONTINUE")];
    let stage = Stage::set("not-known-yet", Hook::launch("launch"), Duration::from_mins(15), &env).await;
    stage.join().await;
    stage.boot().await;
    let not_yet = Fault {
        times: 2,
        status: Some(400),
        code: Some("InvalidInstanceID.NotFound".to_owned()),
        ..Fault::of(stage.lambda.access_key_id(), "ec2", "DescribeInstances")
    };
    world().await.aws_side().add_fault(&not_yet).await.expect("a fault");

    let outcome = stage.lambda.invoke(&stage.event).await;

    assert_eq!(ending(&outcome).0, "done", "its node is Ready: {outcome:#?}");
}

#[tokio::test]
async fn a_launch_that_outlasts_its_invocation_is_waited_for_in_the_next() {
    let hook = Hook::launch("launch");
    // Five seconds of it are kept back.
    let stage = Stage::set("launched-late", hook, Duration::from_secs(15), &[]).await;

    let first = stage.lambda.invoke(&stage.event).await;
    stage.join().await;
    stage.boot().await;
    let second = stage.lambda.invoke(stage.continuation().await).await;

    let id = &stage.instance.instance_id;
    let unfinished = format!(
        "handed on to a later invocation: instance {id} is not ready for the pods of cluster bed: it has not joined"
    );
    let (first, why) = ending(&first);
    assert_eq!(first, "continued", "{why}");
    // So it is told if the time is up while the API server is asked.
    let unanswered =
        why.as_str().is_some_and(|why| why.ends_with("the API server did not answer before the time was up"));
    assert!(why == unfinished || unanswered, "{why}");
    assert_eq!(ending(&second).0, "done", "{second:#?}");
    assert_eq!(receipt(&second)["earlier"].as_array().map(Vec::len), Some(1));
    assert_eq!(stage.state().await.actions[0].result.as_deref(), Some("CONTINUE"));
}

#[tokio::test]
async fn an_instance_whose_node_is_never_ready_is_abandoned_and_the_notice_fails() {
    assert_eq!(never_ready("never-ready", &[]).await.as_deref(), Some("ABANDON"));
}

#[tokio::test]
async fn an_instance_whose_node_is_never_ready_goes_into_service_if_the_setting_says_so_and_the_notice_fails() {
    let env = [("SPILLWAY_LAUNCH", "CONTINUE")];
    assert_eq!(never_ready("never-mind", &env).await.as_deref(), Some("CONTINUE"));
}

/// What the hook of a node that joins and is not Ready was told at the end of its wait.
async fn never_ready(name: &str, env: &[(&str, &str)]) -> Option<String> {
    // The answer is sent five seconds before that: time enough to join, and to be looked at.
    let hook = Hook::launch("launch").global_timeout(Duration::from_secs(35));
    let stage = Stage::set(name, hook, Duration::from_mins(15), env).await;
    stage.join().await;

    let outcome = stage.lambda.invoke(&stage.event).await;

    let error = outcome.result.as_ref().expect_err("it fails");
    assert_eq!(error.error_type, "NodeNotReady");
    let node = &stage.instance.private_dns_name;
    assert!(error.message.contains(&format!("its node {node} is not Ready: ")), "{error}");
    stage.state().await.actions[0].result.clone()
}

#[tokio::test]
async fn what_was_seen_of_a_node_last_counts_when_the_api_server_says_no_more() {
    let world = world().await;
    // The API server has to be asked twice, five seconds before that at the latest.
    let hook = Hook::launch("launch").global_timeout(Duration::from_secs(35));
    let stage = Stage::set("silenced", hook, Duration::from_mins(15), &[]).await;
    let gateway = Gateway::before_api_server(world, Rules::default()).expect("a gateway");
    gateway.show(world, stage.lambda.access_key_id()).await.expect("EKS shows the gateway");
    stage.join().await;
    let (lambda, event) = (stage.lambda.clone(), stage.event.clone());
    let waiting = tokio::spawn(async move { lambda.invoke(event).await });
    // A second look, so that the answer to the first has arrived.
    until_looked(&stage, 200, 2).await;
    gateway.network().set_mode(Mode::BlackHole).await.expect("the API server is silent");

    let outcome = waiting.await.expect("no panic");

    assert_eq!(outcome.result.as_ref().expect_err("it fails").error_type, "NodeNotReady", "{outcome:#?}");
    assert_eq!(stage.state().await.actions[0].result.as_deref(), Some("ABANDON"));
}

#[tokio::test]
async fn a_launch_hook_that_waits_no_longer_ends_the_waiting_and_not_in_error() {
    let stage = Stage::set("launch-over", Hook::launch("launch"), Duration::from_mins(15), &[]).await;
    let nobody_waits = Fault {
        status: Some(400),
        code: Some("ValidationError".to_owned()),
        message: Some("No active Lifecycle Action found with instance ID i-0".to_owned()),
        ..Fault::of(stage.lambda.access_key_id(), "autoscaling", "RecordLifecycleActionHeartbeat")
    };
    world().await.aws_side().add_fault(&nobody_waits).await.expect("a fault");

    let outcome = stage.lambda.invoke(&stage.event).await;

    let reason = "the launch hook waited no longer, before the node was Ready";
    assert_eq!(ending(&outcome), (json!("ignored"), json!(reason)));
    assert_eq!(receipt(&outcome)["hook"]["state"], "already-over");
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

#[tokio::test]
async fn a_node_that_comes_out_of_a_running_warm_pool_is_given_back() {
    let aws = world().await.aws_side();
    let hooks = [Hook::launch("launch"), Hook::terminate("spillway")];
    let stage = Stage::set_with("running-pool", &hooks, Duration::from_mins(15), &[]).await;
    let (id, node) = (&stage.instance.instance_id, &stage.instance.private_dns_name);
    stage.join().await;
    stage.boot().await;
    assert_eq!(ending(&stage.lambda.invoke(&stage.event).await).0, "done");
    let returned = the_one(aws.return_to_running_warm_pool(id).await.expect("it scales in"));
    assert_eq!(ending(&stage.lambda.invoke(returned).await).0, "drained");

    let launched = the_one(aws.launch_from_warm_pool(id).await.expect("it scales out"));
    let given_back = stage.lambda.invoke(launched).await;

    let reason = format!(
        "node {node} is Ready: its launch hook is completed; node {node} is given back to use: its instance has left the \
         warm pool"
    );
    assert_eq!(ending(&given_back), (json!("done"), json!(reason)));
    let node = Api::<Node>::all(world().await.admin()).get(node).await.expect("it is there");
    assert_eq!(node.spec.and_then(|spec| spec.unschedulable), None);
    assert_eq!(stage.state().await.lifecycle_state.as_deref(), Some("InService"));
}

#[tokio::test]
async fn the_hook_of_a_replaced_root_volume_waits_for_another_boot() {
    let stage = Stage::set("another-boot", Hook::launch("launch"), Duration::from_mins(15), &[]).await;
    stage.join().await;
    stage.boot().await;
    stage.take_out_for_its_root_volume().await;
    let (lambda, event) = (stage.lambda.clone(), stage.root_volume_replaced());
    let waiting = tokio::spawn(async move { lambda.invoke(event).await });
    // The control plane has not missed the old kubelet yet.
    until_looked(&stage, 200, 2).await;
    assert_eq!(stage.state().await.actions[0].result, None, "its node is Ready in the old boot");

    stage.boot().await;

    let outcome = waiting.await.expect("no panic");
    let (ending, reason) = ending(&outcome);
    assert_eq!(ending, "done", "{outcome:#?}");
    assert!(reason.as_str().is_some_and(|reason| reason.contains("is given back to use")), "{reason}");
    assert_eq!(stage.state().await.actions[0].result.as_deref(), Some("CONTINUE"));
}

#[tokio::test]
async fn an_instance_that_never_boots_from_its_new_root_volume_gets_the_answer_of_one_that_is_never_ready() {
    // The answer is sent five seconds before that: time enough to join, to boot and to be looked at.
    let hook = Hook::launch("launch").global_timeout(Duration::from_secs(35));
    let stage = Stage::set("no-other-boot", hook, Duration::from_mins(15), &[]).await;
    stage.join().await;
    stage.boot().await;
    stage.take_out_for_its_root_volume().await;

    let outcome = stage.lambda.invoke(stage.root_volume_replaced()).await;

    let error = outcome.result.as_ref().expect_err("somebody has to look");
    assert_eq!(error.error_type, "NotBack");
    assert!(error.message.contains("it has not rebooted"), "{error}");
    assert_eq!(stage.state().await.actions[0].result.as_deref(), Some("ABANDON"));
}

/// Waits until the function has looked for the node so often with that answer.
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

async fn until_looked(stage: &Stage, code: u16, times: usize) {
    let mut audit = stage.audit.clone();
    let looked = audit.wait_until("a look at the node", Duration::from_secs(60), |requests| {
        requests.iter().filter(|request| request.resource == "nodes" && request.code == Some(code)).count() >= times
    });
    looked.await.unwrap_or_else(|error| panic!("{error}"));
}
