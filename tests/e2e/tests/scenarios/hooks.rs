//! Lifecycle hooks: held while the node drains, completed when it is empty, never left hanging.

use std::time::Duration;

use spillway_bed::aws::{Fault, Hook, Instance, InstanceRequest, InstanceState};
use spillway_bed::gateway::{Answer, Fault as GatewayFault, Held, Rule, Side, Which};
use spillway_bed::lambda::{LambdaOptions, Outcome};
use spillway_bed::pods::{self, PodShape};
use spillway_bed::{NodeOptions, nodes};
use spillway_e2e::{Stage, fates, function, receipt, the_one, world};

/// A hook whose heartbeats come every five seconds.
pub(crate) fn often() -> Hook {
    Hook::terminate("spillway").heartbeat_timeout(Duration::from_secs(10))
}

#[tokio::test]
async fn a_terminate_notice_drains_the_node_completes_the_hook_and_lets_the_instance_go() {
    let stage = Stage::set_in_group("terminate", Hook::terminate("spillway")).await;
    stage.deploy("web", 3, PodShape::default().exits_after(Duration::from_secs(1))).await;

    let outcome = stage.deliver(stage.terminate().await).await;

    let answer = outcome.result.as_ref().expect("it drains");
    assert_eq!(answer["ending"], "drained");
    assert_eq!(fates(answer)["clean"], 3);
    assert_completed_by_call(&stage).await;
    nodes::until_gone(&stage.world.admin(), &stage.node.name).await.expect("the cloud takes the node away");
}

#[tokio::test]
async fn a_group_that_keeps_instances_keeps_the_one_whose_pods_a_budget_blocks_to_the_end() {
    let name = "kept-instance";
    let aws = world().await.aws_side();
    let hook = Hook::terminate("spillway").global_timeout(Duration::from_secs(30));
    aws.put_group_that_keeps(name, &[hook]).await.expect("a group");
    let group = NodeOptions { group: Some(name.to_owned()), ..NodeOptions::default() };
    let mut stage = Stage::set_with(name, group).await;
    stage.deploy("web", 1, PodShape::default().grace(10)).await;
    let client = stage.world.admin();
    pods::create(&client, &pods::budget(&stage.name, "web", 1)).await.expect("the budget is new");
    pods::until_budget_sees(&client, &stage.name, "web", 1).await.expect("it counts");

    let outcome = stage.lambda.invoke(stage.terminate().await).await;

    let receipt = receipt(&outcome);
    let error = outcome.result.as_ref().expect_err("somebody has to look");
    assert_eq!(error.error_type, "InstanceKept", "{error}");
    let id = &stage.node.instance_id;
    let ends_it = format!("aws autoscaling terminate-instance-in-auto-scaling-group --instance-id {id}");
    let reason = receipt["reason"].as_str().expect("it has one");
    assert!(reason.contains(&ends_it) && reason.contains("PodDisruptionBudget"), "{reason}");
    assert_eq!((&receipt["hook"]["result"], &receipt["pods"][0]["fate"]), (&"ABANDON".into(), &"remaining".into()));
    let instance = stage.world.aws_side().instance(id).await.expect("it is known");
    assert_eq!(instance.lifecycle_state.as_deref(), Some("Terminating:Retained"), "{instance:?}");
    let requests = stage.audit.requests().expect("the audit log is there");
    assert!(!requests.iter().any(|request| request.verb == "delete"), "its budget held to the end: {requests:?}");
}

#[tokio::test]
async fn with_a_tag_only_hooks_of_groups_that_have_it_are_completed() {
    let setting = [("SPILLWAY_HOOK_GROUP_TAG", "drained-by=spillway")];
    let tagged = tagged_group("hook-tagged", &[("drained-by", "spillway"), ("team", "shop")]).await;
    let other = tagged_group("hook-untagged", &[("drained-by", "nobody")]).await;

    for (stage, state) in [(tagged, "completed"), (other, "failed")] {
        let stage = stage.with_settings(&setting).await;
        let outcome = stage.lambda.invoke(stage.terminate().await).await;
        let receipt = receipt(&outcome);
        assert_eq!(receipt["hook"]["state"], state, "{receipt:#}");
        let calls = stage.aws_calls().await;
        assert!(calls.contains(&"autoscaling:CompleteLifecycleAction".to_owned()), "{calls:?}");
        if state == "failed" {
            let error = format!("{receipt}{:?}", outcome.result);
            assert!(error.contains("autoscaling:CompleteLifecycleAction is denied"), "it is told: {error}");
        }
    }
}

/// A node of a group with a terminate hook and these tags.
async fn tagged_group(name: &str, tags: &[(&str, &str)]) -> Stage {
    let aws = world().await.aws_side();
    aws.put_tagged_group(name, &[Hook::terminate("spillway")], tags).await.expect("a group");
    Stage::set_with(name, NodeOptions { group: Some(name.to_owned()), ..NodeOptions::default() }).await
}

#[tokio::test]
async fn a_hook_is_kept_waiting_while_pods_take_longer_than_its_timeout() {
    let hook = Hook::terminate("spillway").heartbeat_timeout(Duration::from_secs(10));
    let stage = Stage::set_in_group("heartbeat", hook).await;
    stage.deploy("slow", 1, PodShape::default().exits_after(Duration::from_secs(25))).await;
    // Before the hook's time runs.
    stage.lambda.initialize().await.expect("it starts");

    let outcome = stage.lambda.invoke(stage.terminate().await).await;

    let answer = outcome.result.as_ref().expect("it drains");
    assert_eq!(answer["hook"]["state"], "completed", "{answer:#}");
    assert_eq!(fates(answer)["clean"], 1);
    let instance = stage.world.aws_side().instance(&stage.node.instance_id).await.expect("it is known");
    assert!(instance.actions[0].heartbeats >= 3, "{instance:?}");
    assert_eq!(instance.actions[0].ended_by.as_deref(), Some("call"));
}

#[tokio::test]
async fn a_hook_is_kept_waiting_while_the_pods_cannot_be_listed() {
    let hook = Hook::terminate("spillway").heartbeat_timeout(Duration::from_secs(10));
    let stage = Stage::set_in_group("unlisted", hook).await;
    stage.deploy("web", 1, PodShape::default()).await;
    let gateway = stage.through_gateway().await;
    let away = Which::For(Duration::from_secs(20));
    gateway.rules().add(Rule::new("list pods", away, GatewayFault::Answer(Answer::kubernetes(503))));
    // Before the hook's time runs.
    stage.lambda.initialize().await.expect("it starts");

    let outcome = stage.lambda.invoke(stage.terminate().await).await;

    let answer = outcome.result.as_ref().expect("it drains");
    assert_eq!((&answer["ending"], &answer["hook"]["state"]), (&"drained".into(), &"completed".into()), "{answer:#}");
    let instance = stage.world.aws_side().instance(&stage.node.instance_id).await.expect("it is known");
    assert!(instance.actions[0].heartbeats >= 3, "{instance:?}");
    assert_eq!(instance.actions[0].ended_by.as_deref(), Some("call"));
}

#[tokio::test]
async fn a_hook_that_ends_while_the_pods_are_being_listed_ends_the_waiting() {
    let mut stage = Stage::set_in_group("ended-unlisted", often()).await;
    // Before the hook's time runs.
    stage.lambda.initialize().await.expect("it starts");
    stage.deploy("web", 1, PodShape::default()).await;
    let gateway = stage.through_gateway().await;
    let held = Held::default();
    gateway.rules().add(Rule::new("list pods", Which::All, GatewayFault::Hold(Side::Before, held.clone())));
    let (lambda, event) = (stage.lambda.clone(), stage.terminate().await);
    let drain = tokio::spawn(async move { lambda.invoke(event).await });
    held.reached().await;
    stage.world.aws_side().add_fault(&nobody_waits(&stage, "RecordLifecycleActionHeartbeat")).await.expect("a fault");

    let outcome = drain.await.expect("no panic");

    let answer = outcome.result.as_ref().expect("it is no failure");
    assert_eq!((&answer["ending"], &answer["hook"]["state"]), (&"ignored".into(), &"already-over".into()));
    let node = &stage.node.name;
    let reason = format!("the lifecycle hook waits no longer; the pods of node {node} had not been listed");
    assert_eq!(answer["reason"], reason);
    assert_eq!(evicted(&mut stage), 0);
}

#[tokio::test]
async fn the_hook_of_an_instance_that_never_joined_is_completed() {
    let world = world().await;
    let aws = world.aws_side();
    aws.put_group("never-joined", &[Hook::terminate("spillway")]).await.expect("a group");
    let request = InstanceRequest {
        cluster: Some(world.cluster.clone()),
        group: Some("never-joined".to_owned()),
        ..InstanceRequest::default()
    };
    let instance = aws.run_instance(&request).await.expect("an instance");
    let lambda = function(world, "never-joined", &[]).await;

    let outcome = lambda.invoke(the_one(aws.terminate(&instance.instance_id).await.expect("it terminates"))).await;

    let answer = outcome.result.as_ref().expect("it is no failure");
    assert_eq!(answer["ending"], "ignored");
    let reason = format!("not a node of ours: cluster bed has no node with the provider id {}", instance.provider_id);
    assert_eq!(answer["reason"], reason);
    assert_eq!((&answer["hook"]["state"], &answer["hook"]["result"]), (&"completed".into(), &"CONTINUE".into()));
    let state = aws.instance(&instance.instance_id).await.expect("it is known");
    assert_eq!(state.actions[0].result.as_deref(), Some("CONTINUE"));
}

#[tokio::test]
async fn a_node_whose_provider_id_has_no_zone_is_drained_before_its_hook_is_completed() {
    let (world, name) = (world().await, "no-zone");
    let aws = world.aws_side();
    aws.put_group(name, &[Hook::terminate("spillway")]).await.expect("a group");
    let options = NodeOptions { group: Some(name.to_owned()), ..NodeOptions::default() };
    let instance = aws.run_instance(&world.instance_request(&options)).await.expect("an instance");
    let named = Instance { provider_id: format!("aws:////{}", instance.instance_id), ..instance };
    let node = world.join(&named, &options).await.expect("the node joins");
    let client = world.admin();
    pods::create_namespace(&client, name).await.expect("a namespace");
    pods::run_deployment(&client, name, "web", 2, &PodShape::default().on_node(&node.name))
        .await
        .expect("its pods run");
    let lambda = function(world, name, &[]).await;

    let outcome = lambda.invoke(the_one(aws.terminate(&node.instance_id).await.expect("it terminates"))).await;

    let answer = outcome.result.as_ref().expect("it drains");
    assert_eq!((&answer["ending"], &answer["hook"]["state"]), (&"drained".into(), &"completed".into()), "{answer:#}");
    assert_eq!((&answer["node"], fates(answer)["clean"]), (&node.name.into(), 2), "{answer:#}");
}

#[tokio::test]
async fn a_hook_that_has_run_out_before_its_notice_is_looked_at_is_no_error() {
    let hook = Hook::terminate("spillway").heartbeat_timeout(Duration::from_secs(1));
    let stage = Stage::set_in_group("over", hook).await;
    let event = stage.terminate().await;
    nodes::until_gone(&stage.world.admin(), &stage.node.name).await.expect("the hook expires, the instance goes");

    let outcome = stage.deliver(event).await;

    let answer = outcome.result.as_ref().expect("it is no failure");
    assert_eq!((&answer["ending"], &answer["hook"]["state"]), (&"ignored".into(), &"already-over".into()));
}

#[tokio::test]
async fn a_hook_that_has_been_completed_by_somebody_else_is_no_error() {
    let stage = Stage::set_in_group("over-by-call", Hook::terminate("spillway")).await;
    let event = stage.terminate().await;
    let somebody_else = function(stage.world, "over-by-call-other", &[]).await;
    let completed = somebody_else.invoke(&event).await.result.expect("it drains");
    assert_eq!(completed["hook"]["state"], "completed");
    nodes::until_gone(&stage.world.admin(), &stage.node.name).await.expect("the instance goes");

    let outcome = stage.deliver(event).await;

    let answer = outcome.result.as_ref().expect("it is no failure");
    assert_eq!((&answer["ending"], &answer["hook"]["state"]), (&"ignored".into(), &"already-over".into()));
}

#[tokio::test]
async fn a_hook_that_ends_while_the_node_drains_ends_the_waiting_and_not_in_error() {
    let mut stage = Stage::set_in_group("ended", often()).await;
    stage.deploy("slow", 1, PodShape::default().exits_after(Duration::from_secs(25))).await;
    // Before the hook's time runs.
    stage.lambda.initialize().await.expect("it starts");
    let (lambda, event) = (stage.lambda.clone(), stage.terminate().await);
    let drain = tokio::spawn(async move { lambda.invoke(event).await });
    stage.until_evicted(1).await;
    stage.world.aws_side().add_fault(&nobody_waits(&stage, "RecordLifecycleActionHeartbeat")).await.expect("a fault");

    let outcome = drain.await.expect("no panic");

    let answer = outcome.result.as_ref().expect("it is no failure");
    assert_eq!((&answer["ending"], &answer["hook"]["state"]), (&"ignored".into(), &"already-over".into()));
    let node = &stage.node.name;
    assert_eq!(answer["reason"], format!("the lifecycle hook waits no longer; 1 pod was still on node {node}"));
    assert!(!stage.aws_calls().await.iter().any(|call| call.ends_with("CompleteLifecycleAction")));
}

/// What Auto Scaling answers when the action has been completed, or its time has passed.
pub(crate) fn nobody_waits(stage: &Stage, action: &str) -> Fault {
    Fault {
        status: Some(400),
        code: Some("ValidationError".to_owned()),
        message: Some("No active Lifecycle Action found with instance ID i-0".to_owned()),
        ..Fault::of(stage.lambda.access_key_id(), "autoscaling", action)
    }
}

#[tokio::test]
async fn a_hook_that_may_not_be_completed_is_said_to_be_left_and_the_event_is_kept() {
    let stage = Stage::set_in_group("denied-hook", Hook::terminate("spillway")).await;
    let fault = Fault {
        status: Some(403),
        code: Some("AccessDenied".to_owned()),
        message: Some("not authorized".to_owned()),
        ..Fault::of(stage.lambda.access_key_id(), "autoscaling", "CompleteLifecycleAction")
    };
    stage.world.aws_side().add_fault(&fault).await.expect("a fault");
    let event = stage.terminate().await;

    let delivery = stage.lambda.invoke_async(&event).await.expect("the queue works");

    let error = delivery.last.result.as_ref().expect_err("it fails");
    assert_eq!(error.error_type, "AwsDenied");
    assert!(error.message.contains("the function's role lacks autoscaling:CompleteLifecycleAction"), "{error}");
    let reason = receipt(&delivery.last)["reason"].as_str().expect("a reason").to_owned();
    assert!(reason.contains("lifecycle hook spillway of group denied-hook is left to its own timeout"), "{reason}");
    assert_eq!(delivery.failure_record.expect("it is kept")["requestPayload"], event);
}

#[tokio::test]
async fn each_hook_of_a_group_is_completed_and_the_node_is_drained_once() {
    let world = world().await;
    let hooks = [Hook::terminate("spillway"), Hook::terminate("traces")];
    world.aws_side().put_group("two-hooks", &hooks).await.expect("the group is new");
    let node = NodeOptions { group: Some("two-hooks".to_owned()), ..NodeOptions::default() };
    let mut stage =
        Stage::set_with("two-hooks", node).await.with_settings(&[("SPILLWAY_HOOKS", "spillway,traces")]).await;
    // Slow enough to be still there when the other comes to look.
    stage.deploy("web", 3, PodShape::default().exits_after(Duration::from_secs(10))).await;
    let delivered = world.aws_side().terminate(&stage.node.instance_id).await.expect("it terminates");
    let [drain, logs] = <[_; 2]>::try_from(delivered).expect("a notice for each hook");

    let lambda = stage.lambda.clone();
    let both = async { tokio::join!(lambda.invoke(drain.event), lambda.invoke(logs.event)) };
    let (one, other) = stage.joined_after_evictions(3, both).await;

    assert_eq!(endings(&one, &other), ["drained", "joined"], "{one:#?} {other:#?}");
    assert_eq!(evicted(&mut stage), 3);
    let instance = world.aws_side().instance(&stage.node.instance_id).await.expect("it is known");
    assert!(instance.actions.iter().all(|action| action.result.as_deref() == Some("CONTINUE")), "{instance:?}");
}

#[tokio::test]
async fn of_the_hooks_of_a_group_only_those_that_the_setting_names_are_ours() {
    let world = world().await;
    let hooks = [Hook::terminate("spillway"), Hook::terminate("traces")];
    world.aws_side().put_group("named-hooks", &hooks).await.expect("the group is new");
    let node = NodeOptions { group: Some("named-hooks".to_owned()), ..NodeOptions::default() };
    let stage = Stage::set_with("named-hooks", node).await;
    let env = [("SPILLWAY_HOOKS".to_owned(), "spillway".to_owned())].into();
    let stage = stage.with_function(LambdaOptions { env, ..LambdaOptions::default() }).await;
    let delivered = world.aws_side().terminate(&stage.node.instance_id).await.expect("it terminates");
    let [drain, logs] = <[_; 2]>::try_from(delivered).expect("a notice for each hook");

    let of_logs = stage.lambda.invoke(logs.event).await;
    assert_eq!(stage.aws_calls().await, [""; 0], "nothing is asked about a hook that is not ours");
    let of_drain = stage.lambda.invoke(drain.event).await;

    let reason = "lifecycle hook traces is not one of those that Hooks names";
    let said = of_logs.result.as_ref().expect("it is no failure")["reason"].as_str().unwrap_or_default();
    assert!(said.starts_with(reason), "{said}");
    assert_eq!(of_drain.result.as_ref().expect("it drains")["ending"], "drained");
    let instance = world.aws_side().instance(&stage.node.instance_id).await.expect("it is known");
    assert_eq!(instance.lifecycle_state.as_deref(), Some("Terminating:Wait"), "for its other hook");
    assert_eq!(results(&instance), [("spillway", Some("CONTINUE")), ("traces", None)]);
}

#[tokio::test]
async fn the_hooks_that_eks_puts_on_managed_node_groups_are_left_to_eks() {
    let stage = Stage::set_in_group("hook-of-eks", Hook::terminate("Terminate-LC-Hook")).await;

    let outcome = stage.lambda.invoke(stage.terminate().await).await;

    let answer = outcome.result.as_ref().expect("it is no failure");
    let reason = answer["reason"].as_str().unwrap_or_default();
    assert!(reason.starts_with("lifecycle hook Terminate-LC-Hook is not one of those that Hooks names"), "{reason}");
    let instance = stage.world.aws_side().instance(&stage.node.instance_id).await.expect("it is known");
    assert_eq!((instance.actions[0].heartbeats, &instance.actions[0].result), (0, &None));
    assert_eq!(stage.aws_calls().await, [""; 0]);
}

#[tokio::test]
async fn a_hook_is_completed_right_after_the_cordon_if_the_setting_asks_for_no_more() {
    let mut stage = Stage::set_in_group("cordon-only", Hook::terminate("spillway")).await;
    stage = stage.with_settings(&[("SPILLWAY_DRAIN_ON", "off"), ("SPILLWAY_CORDON_ON", "terminate")]).await;
    stage.deploy("web", 2, PodShape::default()).await;

    // Nothing is claimed for a cordon: of two at once either may complete the hook.
    let outcome = stage.lambda.invoke(stage.terminate().await).await;

    let answer = outcome.result.as_ref().expect("it is no failure");
    assert_eq!((&answer["ending"], &answer["hook"]["state"]), (&"done".into(), &"completed".into()));
    let reason = format!("node {} is cordoned, and its pods stay: the settings ask for no more", stage.node.name);
    assert_eq!(answer["reason"], reason);
    assert_eq!(evicted(&mut stage), 0);
    let instance = stage.world.aws_side().instance(&stage.node.instance_id).await.expect("it is known");
    assert_eq!(results(&instance), [("spillway", Some("CONTINUE"))]);
}

#[tokio::test]
async fn the_same_event_twice_at_once_drains_once_and_completes_the_hook_once() {
    let mut stage = Stage::set_in_group("same-event", Hook::terminate("spillway")).await;
    // When its pods have gone, so has the node: until then the other has to come.
    stage.deploy("web", 3, PodShape::default().exits_after(Duration::from_secs(20))).await;
    let (lambda, event) = (stage.lambda.clone(), stage.terminate().await);

    let both = async { tokio::join!(lambda.invoke(&event), lambda.invoke(&event)) };
    let (one, other) = stage.joined_after_evictions(3, both).await;

    assert_eq!(endings(&one, &other), ["drained", "joined"], "{one:#?} {other:#?}");
    assert_eq!(evicted(&mut stage), 3);
    let states = [receipt(&one), receipt(&other)].map(|receipt| receipt["hook"]["state"].to_string());
    assert!(states.contains(&"\"completed\"".to_owned()), "{states:?}");
    let instance = stage.world.aws_side().instance(&stage.node.instance_id).await.expect("it is known");
    assert_eq!(instance.actions[0].result.as_deref(), Some("CONTINUE"));
}

#[tokio::test]
async fn blocked_pods_are_deleted_in_time_before_a_hooks_longest_wait_is_over() {
    let hook = Hook::terminate("spillway").global_timeout(Duration::from_secs(30));
    let stage = Stage::set_in_group("delete-held", hook).await;
    stage.deploy("web", 1, PodShape::default().grace(10)).await;
    let client = stage.world.admin();
    pods::create(&client, &pods::budget(&stage.name, "web", 1)).await.expect("the budget is new");
    pods::until_budget_sees(&client, &stage.name, "web", 1).await.expect("it counts");

    let outcome = stage.deliver(stage.terminate().await).await;

    let answer = outcome.result.as_ref().expect("it drains");
    assert_eq!(answer["ending"], "drained", "{answer:#}");
    assert_eq!(fates(answer), [("forced".to_owned(), 1)].into());
    assert_completed_by_call(&stage).await;
}

/// The hook was completed in time, by whichever of two deliveries was first.
async fn assert_completed_by_call(stage: &Stage) {
    let instance = stage.world.aws_side().instance(&stage.node.instance_id).await.expect("it is known");
    let action = &instance.actions[0];
    assert_eq!((action.result.as_deref(), action.ended_by.as_deref()), (Some("CONTINUE"), Some("call")));
}

/// The endings of two invocations, in alphabetical order.
fn endings(one: &Outcome, other: &Outcome) -> [String; 2] {
    let mut endings = [one, other].map(|outcome| receipt(outcome)["ending"].as_str().unwrap_or_default().to_owned());
    endings.sort();
    endings
}

/// What each hook of an instance was told.
fn results(instance: &InstanceState) -> Vec<(&str, Option<&str>)> {
    instance.actions.iter().map(|action| (action.hook.as_str(), action.result.as_deref())).collect()
}

/// How many evictions were asked for and granted.
fn evicted(stage: &mut Stage) -> usize {
    let requests = stage.audit.requests().expect("the audit log is there");
    requests.iter().filter(|request| request.subresource == "eviction" && request.code == Some(201)).count()
}
