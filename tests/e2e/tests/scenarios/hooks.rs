//! Lifecycle hooks: held while the node drains, completed when the node is empty, reported if left.
//!
//! Reason: whole way, process.

use serde_json::json;
use spillway_bed::aws::Hook;
use spillway_bed::{NodeOptions, nodes};
use spillway_e2e::{Stage, answer, assert_drained, ended, function, world};

#[tokio::test]
async fn terminate_notice_drains_the_node_and_completes_the_hook() {
    let stage = Stage::set_in_group("terminate", Hook::terminate("spillway")).await;
    stage.deploy_quick("web", 3).await;

    let outcome = stage.deliver(stage.terminate().await).await;

    assert_drained(&outcome, 3);
    let action = stage.action().await;
    assert_eq!((action.result.as_deref(), action.ended_by.as_deref()), (Some("CONTINUE"), Some("call")));
    nodes::until_gone(&stage.client(), &stage.node.name).await.expect("the cloud deletes the node");
}

#[tokio::test]
async fn hook_completed_by_another_function_is_no_failure() {
    let stage = Stage::set_in_group("over-by-call", Hook::terminate("spillway")).await;
    let event = stage.terminate().await;
    let another = function(stage.world, "over-by-call-other", &[]).await;
    assert_eq!(answer(&another.invoke(&event).await)["hook"]["state"], "completed");
    nodes::until_gone(&stage.client(), &stage.node.name).await.expect("the cloud deletes the node");

    let outcome = stage.deliver(event).await;

    let answer = answer(&outcome);
    assert_eq!((&answer["ending"], &answer["hook"]["state"]), (&json!("ignored"), &json!("already-over")));
}

#[tokio::test]
async fn denied_completion_leaves_the_hook_and_keeps_the_event() {
    let stage = Stage::set_in_group("denied-hook", Hook::terminate("spillway")).await;
    stage.refuse_call("autoscaling", "CompleteLifecycleAction", 403, "AccessDenied", "not authorized").await;
    let event = stage.terminate().await;

    let delivery = stage.lambda.invoke_async(&event).await.expect("the queue works");

    let error = delivery.last.result.as_ref().expect_err("a failure");
    assert_eq!(error.error_type, "AwsDenied");
    assert!(error.message.contains("the function's role lacks autoscaling:CompleteLifecycleAction"), "{error}");
    let reason = ended(&delivery.last).1;
    assert!(reason.contains("lifecycle hook spillway of group denied-hook is left to its own timeout"), "{reason}");
    assert_eq!(delivery.failure_record.expect("a record")["requestPayload"], event);
}

#[tokio::test]
async fn hook_that_the_setting_does_not_name_is_ignored() {
    let world = world().await;
    let hooks = [Hook::terminate("spillway"), Hook::terminate("traces")];
    world.aws_side().put_group("named-hooks", &hooks).await.expect("the group is new");
    let stage = Stage::set_with("named-hooks", NodeOptions::in_group("named-hooks")).await;
    let stage = stage.with_settings(&[("SPILLWAY_HOOKS", "spillway")]).await;
    let delivered = world.aws_side().terminate(&stage.node.instance_id).await.expect("Auto Scaling terminates");
    let [ours, traces] = <[_; 2]>::try_from(delivered).expect("a notice of each hook");

    let of_traces = stage.lambda.invoke(traces.event).await;
    assert_eq!(stage.aws_calls().await, [""; 0]);
    let of_ours = stage.lambda.invoke(ours.event).await;

    let reason = ended(&of_traces).1;
    assert!(reason.starts_with("lifecycle hook traces is not one of those that Hooks names"), "{reason}");
    assert_eq!(answer(&of_ours)["ending"], "drained");
    let instance = stage.instance().await;
    assert_eq!(instance.lifecycle_state.as_deref(), Some("Terminating:Wait"), "the other hook holds the instance");
    let results = instance.actions.iter().map(|action| (action.hook.as_str(), action.result.as_deref()));
    assert_eq!(results.collect::<Vec<_>>(), [("spillway", Some("CONTINUE")), ("traces", None)]);
}
