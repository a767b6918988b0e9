//! Lifecycle hooks: held while the node drains, completed when it is empty, never left hanging.
//!
//! Reason: whole way, process.

use std::time::Duration;

use crate::continued::{deploy_slow_pod, end_slow_pod};
use spillway_bed::aws::{Fault, Hook, InstanceState};
use spillway_bed::lambda::LambdaOptions;
use spillway_bed::pods::PodShape;
use spillway_bed::{NodeOptions, nodes};
use spillway_e2e::{Stage, fates, function, receipt, world};

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
async fn a_hook_is_kept_waiting_while_pods_take_longer_than_its_timeout() {
    let hook = Hook::terminate("spillway").heartbeat_timeout(Duration::from_mins(1));
    let stage = Stage::set_in_group("heartbeat", hook).await;
    deploy_slow_pod(&stage).await;

    let held = async {
        stage.until_held(2).await;
        end_slow_pod(&stage).await;
    };
    let (outcome, ()) = tokio::join!(stage.lambda.invoke(stage.terminate().await), held);

    let answer = outcome.result.as_ref().expect("it drains");
    assert_eq!(answer["hook"]["state"], "completed", "{answer:#}");
    let instance = stage.world.aws_side().instance(&stage.node.instance_id).await.expect("it is known");
    assert_eq!(instance.actions[0].ended_by.as_deref(), Some("call"));
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

/// The hook was completed in time, by whichever of two deliveries was first.
async fn assert_completed_by_call(stage: &Stage) {
    let instance = stage.world.aws_side().instance(&stage.node.instance_id).await.expect("it is known");
    let action = &instance.actions[0];
    assert_eq!((action.result.as_deref(), action.ended_by.as_deref()), (Some("CONTINUE"), Some("call")));
}

/// What each hook of an instance was told.
fn results(instance: &InstanceState) -> Vec<(&str, Option<&str>)> {
    instance.actions.iter().map(|action| (action.hook.as_str(), action.result.as_deref())).collect()
}
