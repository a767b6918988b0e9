//! Drains that outlast their invocation: the function invokes itself with what is left.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use serde_json::{Value, json};
use spillway_bed::audit::AuditLog;
use spillway_bed::aws::{Fault, Hook};
use spillway_bed::lambda::{LambdaOptions, Outcome};
use spillway_bed::nodes;
use spillway_bed::pods::PodShape;
use spillway_bed::proxy::Mode;
use spillway_e2e::{Stage, receipt};

/// Five seconds of it are kept back for the hook and for handing on.
const INVOCATION: Duration = Duration::from_secs(15);

/// A stage whose function is ended by Lambda after 15 seconds, and not minutes.
async fn stage(name: &str, hook: Hook) -> Stage {
    Stage::set_in_group(name, hook).await.with_invocations_of(INVOCATION).await
}

/// A pod that is still shutting down at the end of every invocation, unless the test ends it.
async fn deploy_slow_pod(stage: &Stage) {
    stage.deploy("slow", 1, PodShape::default().exits_after(Duration::from_mins(10)).grace(600)).await;
}

/// Ends the pods of the deployment `slow`, however long they would take.
pub(crate) async fn end_slow_pod(stage: &Stage) {
    let slow = ListParams::default().labels("app=slow").fields(&format!("spec.nodeName={}", stage.node.name));
    let pods: Api<Pod> = Api::namespaced(stage.world.admin(), &stage.name);
    pods.delete_collection(&DeleteParams::default().grace_period(0), &slow).await.expect("it ends");
}

/// Waits until the claim has passed from the first invocation to the next, and so many go on with it: each watches the
/// pod that shuts down, as the first did.
async fn until_taken_over(audit: &mut AuditLog, going_on: usize) {
    let claims = audit.wait_until("the claim to be taken over", Duration::from_secs(60), |requests| {
        let of = |verb: &str, resource: &str| {
            requests.iter().filter(|r| r.verb == verb && r.resource == resource && r.code == Some(200)).count()
        };
        of("patch", "nodes") == 2 && of("watch", "pods") > going_on
    });
    claims.await.unwrap_or_else(|error| panic!("{error}"));
}

/// Invokes the function with what it has asked to be invoked with, until it asks no more.
async fn until_the_end(stage: &Stage, first: Outcome) -> Vec<Outcome> {
    let mut outcomes = vec![first];
    while ending(&outcomes[outcomes.len() - 1]) == "continued" {
        outcomes.push(stage.lambda.invoke(stage.continuation().await).await);
    }
    outcomes
}

fn ending(outcome: &Outcome) -> String {
    receipt(outcome)["ending"].as_str().unwrap_or_default().to_owned()
}

/// What Auto Scaling was told in the end, and how often it was told anything.
async fn told(stage: &Stage) -> (Option<String>, usize) {
    let instance = stage.world.aws_side().instance(&stage.node.instance_id).await.expect("it is known");
    let completions = stage.aws_calls().await.into_iter().filter(|call| call.ends_with("CompleteLifecycleAction"));
    (instance.actions[0].result.clone(), completions.count())
}

async fn break_calls(stage: &Stage, service: &str, action: &str, status: u16, code: &str, message: &str) {
    let fault = Fault {
        status: Some(status),
        code: Some(code.to_owned()),
        message: Some(message.to_owned()),
        ..Fault::of(stage.lambda.access_key_id(), service, action)
    };
    stage.world.aws_side().add_fault(&fault).await.expect("a fault");
}

async fn let_calls_through(stage: &Stage) {
    stage.world.aws_side().clear_faults(stage.lambda.access_key_id()).await.expect("no fault");
}

#[tokio::test]
async fn a_drain_that_outlasts_its_invocation_goes_on_in_the_next_and_tells_its_history() {
    let stage = stage("outlasts", Hook::terminate("spillway")).await;
    stage.deploy("quick", 2, PodShape::default().exits_after(Duration::from_secs(1))).await;
    deploy_slow_pod(&stage).await;

    let first = stage.lambda.invoke(stage.terminate().await).await;

    let answer = first.result.as_ref().expect("it is no failure");
    assert_eq!((&answer["ending"], &answer["hook"]["state"]), (&json!("continued"), &json!("held")), "{first:#?}");
    let node = &stage.node.name;
    let reason = format!("handed on to a later invocation: 1 of 3 pods was still on node {node} when the time was up");
    assert_eq!(answer["reason"], reason);

    let second = stage.lambda.invoke(stage.continuation().await).await;
    assert_eq!(ending(&second), "continued", "{second:#?}");
    end_slow_pod(&stage).await;
    let third = stage.lambda.invoke(stage.continuation().await).await;

    let last = receipt(&third);
    assert_eq!(last["ending"], "drained", "{third:#?}");
    // The slow one left between two invocations.
    assert_eq!(last["reason"], format!("all 3 pods that had to leave node {node} have gone"));
    let earlier: Vec<&Value> = last["earlier"].as_array().expect("it has a history").iter().collect();
    assert_eq!([&earlier[0]["request_id"], &earlier[1]["request_id"]], [&first.request_id, &second.request_id]);
    assert_eq!(earlier[0]["pods"], json!({"clean": 2, "remaining": 1}));
    assert_eq!(earlier[1]["pods"], json!({"remaining": 1}));
    assert_eq!(told(&stage).await, (Some("CONTINUE".to_owned()), 1));
}

#[tokio::test]
async fn a_continuation_that_is_delivered_twice_is_gone_on_with_once_and_joined_once() {
    let mut stage = stage("delivered-twice", Hook::terminate("spillway")).await;
    deploy_slow_pod(&stage).await;
    stage.lambda.invoke(stage.terminate().await).await;
    let continuation = stage.continuation().await;
    let lambda = stage.lambda.clone();

    let (one, other, ()) = tokio::join!(lambda.invoke(&continuation), lambda.invoke(&continuation), async {
        until_taken_over(&mut stage.audit, 1).await;
        end_slow_pod(&stage).await;
    });

    let mut endings = [ending(&one), ending(&other)];
    endings.sort();
    assert_eq!(endings, ["drained", "joined"], "{one:#?} {other:#?}");
    let evictions = stage.requests().into_iter().filter(|request| request.contains("pods/eviction")).count();
    assert_eq!(evictions, 1, "a pod that is leaving is only waited for");
    assert_eq!(told(&stage).await.0.as_deref(), Some("CONTINUE"));
}

#[tokio::test]
async fn a_continuation_that_is_killed_is_gone_on_with_by_lambdas_retry() {
    let mut stage = stage("killed-later", Hook::terminate("spillway")).await;
    deploy_slow_pod(&stage).await;
    stage.lambda.invoke(stage.terminate().await).await;
    let (lambda, continuation) = (stage.lambda.clone(), stage.continuation().await);
    let delivery = tokio::spawn(async move { lambda.invoke_async(continuation).await });
    until_taken_over(&mut stage.audit, 1).await;
    stage.lambda.kill();
    end_slow_pod(&stage).await;

    let delivery = delivery.await.expect("no panic").expect("the queue works");

    assert_eq!(delivery.failed.len(), 1);
    assert_eq!(ending(&delivery.last), "drained", "{delivery:#?}");
    assert_eq!(told(&stage).await, (Some("CONTINUE".to_owned()), 1));
}

/// A stage whose hook cannot be completed, and its first invocation.
async fn not_completed(name: &str) -> (Stage, Outcome) {
    let stage = stage(name, Hook::terminate("spillway")).await;
    break_calls(&stage, "autoscaling", "CompleteLifecycleAction", 500, "InternalFailure", "made by the test").await;
    let first = stage.lambda.invoke(stage.terminate().await).await;
    (stage, first)
}

#[tokio::test]
async fn a_hook_that_could_not_be_completed_in_a_whole_invocation_is_completed_in_the_next() {
    let (mut stage, mut first) = not_completed("not-completed").await;
    // Completing is tried until two seconds are left for handing on: an AWS side that stands still for so long, once,
    // shows nothing.
    if !first.result.as_ref().is_ok_and(|answer| answer["hook"]["state"] == "held") {
        (stage, first) = not_completed("not-completed-again").await;
    }

    let answer = first.result.as_ref().expect("it is no failure");
    assert_eq!((&answer["ending"], &answer["hook"]["state"]), (&json!("continued"), &json!("held")), "{first:#?}");
    let reason = answer["reason"].as_str().expect("a reason");
    assert!(reason.contains("autoscaling:CompleteLifecycleAction fails at AWS' end"), "{reason}");

    let_calls_through(&stage).await;
    let second = stage.lambda.invoke(stage.continuation().await).await;

    let answer = second.result.as_ref().expect("it drains");
    assert_eq!((&answer["ending"], &answer["hook"]["state"]), (&json!("drained"), &json!("completed")));
    assert_eq!(told(&stage).await.0.as_deref(), Some("CONTINUE"));
}

#[tokio::test]
async fn an_api_server_that_refuses_for_a_whole_invocation_is_asked_again_in_the_next() {
    is_asked_again_after("refuses", Mode::Refuse).await;
}

#[tokio::test]
async fn an_api_server_that_says_nothing_for_a_whole_invocation_is_asked_again_in_the_next() {
    is_asked_again_after("says-nothing", Mode::BlackHole).await;
}

#[tokio::test]
async fn a_hook_whose_node_cannot_be_reached_is_let_go_when_its_longest_wait_is_over() {
    let stage = Stage::set_in_group("unreachable", Hook::terminate("spillway")).await;
    let env = [("SPILLWAY_HOOK_MAX_WAIT_S".to_owned(), "60".to_owned())].into();
    let stage = stage.with_function(LambdaOptions { timeout: INVOCATION, env, ..LambdaOptions::default() }).await;
    let proxy = stage.through_proxy().await;
    proxy.set_mode(Mode::Refuse).await.expect("the fault begins");
    let mut notice = stage.terminate().await;
    // Its longest wait is over in the midst of the second invocation.
    notice["time"] = json!((Timestamp::now() - SignedDuration::from_secs(42)).to_string());

    let first = stage.lambda.invoke(notice).await;
    assert_eq!(ending(&first), "continued", "{first:#?}");
    let second = stage.lambda.invoke(stage.continuation().await).await;

    let error = second.result.as_ref().expect_err("the node is not drained");
    assert_eq!(error.error_type, "KubernetesUnreachable", "{error}");
    let hook = &receipt(&second)["hook"];
    assert_eq!((&hook["state"], &hook["result"]), (&json!("completed"), &json!("CONTINUE")), "{second:#?}");
    assert_eq!(told(&stage).await, (Some("CONTINUE".to_owned()), 1));
}

async fn is_asked_again_after(name: &str, fault: Mode) {
    let stage = stage(name, Hook::terminate("spillway")).await;
    let proxy = stage.through_proxy().await;
    proxy.set_mode(fault).await.expect("the fault begins");

    let first = stage.lambda.invoke(stage.terminate().await).await;
    proxy.set_mode(Mode::Pass).await.expect("the fault is over");
    let second = stage.lambda.invoke(stage.continuation().await).await;

    assert_eq!((ending(&first), ending(&second)), ("continued".to_owned(), "drained".to_owned()), "{first:#?}");
    let instance = stage.world.aws_side().instance(&stage.node.instance_id).await.expect("it is known");
    assert!(instance.actions[0].heartbeats >= 2, "the hook is held meanwhile: {instance:?}");
}

#[tokio::test]
async fn a_hook_that_has_gone_when_the_drain_goes_on_ends_the_waiting_and_not_in_error() {
    // Longer than the first invocation, whatever becomes of its heartbeats.
    let stage = stage("gone-later", Hook::terminate("spillway").heartbeat_timeout(Duration::from_secs(20))).await;
    deploy_slow_pod(&stage).await;
    // Before the hook's time runs.
    stage.lambda.initialize().await.expect("it starts");
    stage.lambda.invoke(stage.terminate().await).await;
    let continuation = stage.continuation().await;
    // Lambda's queue takes so long to deliver it that the hook runs out and the instance goes.
    nodes::until_gone(&stage.world.admin(), &stage.node.name).await.expect("the hook expires");

    let late = stage.lambda.invoke(continuation).await;

    let answer = late.result.as_ref().expect("it is no failure");
    assert_eq!((&answer["ending"], &answer["hook"]["state"]), (&json!("ignored"), &json!("already-over")), "{late:#?}");
    let receipt = receipt(&late);
    assert_eq!(receipt["pods"][0]["fate"], "lost", "{receipt:#}");
    let lost = format!("the lifecycle hook waits no longer; 1 pod was still on node {}", stage.node.name);
    assert_eq!(receipt["reason"], lost);
}

#[tokio::test]
async fn a_hook_that_is_over_when_the_drain_is_continued_is_not_said_to_be_held() {
    let mut stage = stage("over-meanwhile", Hook::terminate("spillway")).await;
    deploy_slow_pod(&stage).await;
    let (lambda, event) = (stage.lambda.clone(), stage.terminate().await);
    let drain = tokio::spawn(async move { lambda.invoke(event).await });
    stage.until_evicted(1).await;
    stage.until_held(1).await;
    // The next heartbeat but the one for handing on is due in minutes.
    let nobody_waits = "No active Lifecycle Action found with instance ID i-0";
    break_calls(&stage, "autoscaling", "RecordLifecycleActionHeartbeat", 400, "ValidationError", nobody_waits).await;

    let outcome = drain.await.expect("no panic");

    let receipt = receipt(&outcome);
    assert_eq!((&receipt["ending"], &receipt["hook"]["state"]), (&json!("continued"), &json!("already-over")));
}

#[tokio::test]
async fn when_the_hooks_longest_wait_is_over_it_is_let_go_with_what_is_left() {
    // Five seconds before that the drain is over: in the midst of the second invocation.
    let hook = Hook::terminate("spillway").global_timeout(Duration::from_secs(40));
    let stage = Stage::set_in_group("time-up", hook).await;
    let stage = stage.with_invocations_of(Duration::from_secs(25)).await;
    deploy_slow_pod(&stage).await;

    let first = stage.lambda.invoke(stage.terminate().await).await;
    let outcomes = until_the_end(&stage, first).await;

    let last = &outcomes[outcomes.len() - 1];
    assert!(outcomes.len() > 1, "it took more than one invocation");
    let error = last.result.as_ref().expect_err("a pod is left");
    assert_eq!(error.error_type, "PodsLost", "{error}");
    let last = receipt(last);
    assert_eq!(
        (&last["hook"]["state"], &last["hook"]["result"]),
        (&json!("completed"), &json!("CONTINUE")),
        "{last:#}"
    );
    assert_eq!(told(&stage).await, (Some("CONTINUE".to_owned()), 1));
}

#[tokio::test]
async fn a_drain_that_may_not_be_continued_names_the_right_and_its_event_is_kept() {
    let stage = stage("denied-itself", Hook::terminate("spillway")).await;
    deploy_slow_pod(&stage).await;
    break_calls(&stage, "lambda", "Invoke", 403, "AccessDeniedException", "not authorized").await;
    let event = stage.terminate().await;

    let delivery = stage.lambda.invoke_async(&event).await.expect("the queue works");

    let error = delivery.last.result.as_ref().expect_err("it fails");
    assert_eq!(error.error_type, "AwsDenied");
    assert!(error.message.contains("the function's role lacks lambda:InvokeFunction"), "{error}");
    assert_eq!(delivery.failure_record.expect("it is kept")["requestPayload"], event);
}

#[tokio::test]
async fn a_self_invocation_is_tried_again_when_lambda_fails() {
    let stage = stage("flaky-itself", Hook::terminate("spillway")).await;
    deploy_slow_pod(&stage).await;
    let fault = Fault {
        times: 4,
        status: Some(500),
        code: Some("ServiceException".to_owned()),
        ..Fault::of(stage.lambda.access_key_id(), "lambda", "Invoke")
    };
    stage.world.aws_side().add_fault(&fault).await.expect("a fault");

    let outcome = stage.lambda.invoke(stage.terminate().await).await;

    assert_eq!(ending(&outcome), "continued", "{outcome:#?}");
    stage.continuation().await;
}
