//! Lifecycle hooks: held while the node drains, completed when the node is empty, reported if left.
//!
//! Reason: whole way, API semantics.

use serde_json::json;
use spillway_bed::aws::Hook;
use spillway_bed::pods::{self, PodShape};
use spillway_bed::{NodeOptions, nodes, volumes};
use spillway_e2e::{Stage, answer, assert_drained, ended, world};

#[tokio::test]
async fn terminate_notice_drains_the_node_and_completes_the_hook() {
    let stage = Stage::set_in_group("terminate", Hook::terminate("spillway")).await;
    stage.deploy_quick("web", 3).await;

    let outcome = stage.lambda.invoke(stage.terminate().await).await;

    assert_drained(&outcome, 3);
    let action = stage.action().await;
    assert_eq!((action.result.as_deref(), action.ended_by.as_deref()), (Some("CONTINUE"), Some("call")));
    nodes::until_gone(&stage.client(), &stage.node.name).await.expect("the cloud deletes the node");
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

async fn completions(stage: &Stage) -> usize {
    stage.aws_calls().await.iter().filter(|call| call.ends_with("CompleteLifecycleAction")).count()
}

#[tokio::test]
async fn hook_is_completed_after_the_volume_is_detached() {
    let mut stage = Stage::set_in_group("detached", Hook::terminate("spillway")).await;
    let client = stage.client();
    let volume = volumes::attach(&client, (&stage.name, "data"), &stage.node.name).await.expect("a volume");
    // Bound: the scheduler would wait for the claim.
    let claimed = json!({"spec": {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}});
    let shape = PodShape::default().bound_to(&stage.node.name).with(claimed);
    pods::create(&client, &pods::bare_pod(&stage.name, "db-0", &shape)).await.expect("a pod");
    pods::until_running_of(&client, &stage.name, "db-0", 1).await.expect("the pod runs");

    let drain = stage.start(stage.terminate().await);
    stage.until_requests("a wait", |made| made.iter().any(|made| made.resource == "volumeattachments")).await;
    assert_eq!(completions(&stage).await, 0);
    volumes::detach(&client, &volume).await.expect("the volume was attached");

    let outcome = drain.await.expect("no panic");
    let answer = answer(&outcome);
    assert_eq!((&answer["ending"], &answer["hook"]["state"]), (&"drained".into(), &"completed".into()), "{answer:#}");
    let waited = &answer["after_drain"];
    assert!(waited["volumes_ms"].is_u64() && waited["volumes_attached"].is_null(), "{answer:#}");
    assert_eq!(completions(&stage).await, 1);
    let of_volumes = stage.requests().into_iter().filter(|made| made.resource.contains("volume"));
    let of_volumes: Vec<String> = of_volumes.map(|made| format!("{} {}", made.verb, made.resource)).collect();
    assert_eq!(of_volumes[..2], ["get volumeattachments", "get persistentvolumes"]);
    assert!(of_volumes[2..].iter().all(|made| made == "get volumeattachments"), "{of_volumes:?}");
}
