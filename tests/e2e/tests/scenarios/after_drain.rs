//! When the last pod has gone: what a hook is held for still.
//!
//! Reason: API semantics.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use spillway_bed::audit::Request;
use spillway_bed::aws::Hook;
use spillway_bed::pods::{self, PodShape};
use spillway_bed::volumes::{AttachedVolume, with_claim};
use spillway_e2e::Stage;

/// A stage whose node has a hook, and a pod with the claim `data`.
async fn with_a_volume(name: &str) -> (Stage, AttachedVolume) {
    let stage = Stage::set_in_group(name, Hook::terminate("spillway")).await;
    let volume = attached(&stage, "data", "ReadWriteOnce").await;
    run(&stage, "db-0", PodShape::default(), "data").await;
    (stage, volume)
}

/// A volume of that claim, attached to the stage's node.
async fn attached(stage: &Stage, claim: &str, mode: &str) -> AttachedVolume {
    let client = stage.world.admin();
    AttachedVolume::create(&client, (&stage.name, claim), mode, &stage.node.name).await.expect("it is attached")
}

/// Runs a bare pod with that claim, past the scheduler, which would wait until the claim is bound.
async fn run(stage: &Stage, name: &str, shape: PodShape, claim: &str) -> Pod {
    let pod = pods::bare_pod(&stage.name, name, &with_claim(shape.bound_to(&stage.node.name), claim));
    let pod = pods::create(&stage.world.admin(), &pod).await.expect("it is created");
    let running = |pod: &_| if pods::is_running(pod) { Ok(()) } else { Err("it does not run".to_owned()) };
    pods::until_pod(&stage.world.admin(), &pod, "to run", running).await.expect("it runs");
    pod
}

/// How often the function has completed a hook.
async fn completed(stage: &Stage) -> usize {
    stage.aws_calls().await.iter().filter(|call| call.ends_with("CompleteLifecycleAction")).count()
}

/// What of volumes the function has asked the API server for.
fn asked_of_volumes(stage: &mut Stage) -> Vec<String> {
    let requests = stage.audit.requests().expect("the audit log is there").into_iter();
    let of_volumes = requests.filter(|request| request.resource.contains("volume"));
    of_volumes.map(|request| format!("{} {}", request.verb, request.resource)).collect()
}

#[tokio::test]
async fn a_hook_is_completed_after_the_volume_of_the_last_pod_is_detached() {
    let (mut stage, volume) = with_a_volume("detached").await;
    let (lambda, event) = (stage.lambda.clone(), stage.terminate().await);
    let drain = tokio::spawn(async move { lambda.invoke(event).await });
    let waits = |requests: &[Request]| requests.iter().any(|request| request.resource == "volumeattachments");
    stage.audit.wait_until("it to wait for the volume", Duration::from_mins(1), waits).await.expect("it waits");
    assert_eq!(completed(&stage).await, 0);
    volume.detach().await.expect("it was attached");

    let outcome = drain.await.expect("no panic");

    let answer = outcome.result.as_ref().expect("it drains");
    assert_eq!((&answer["ending"], &answer["hook"]["state"]), (&"drained".into(), &"completed".into()), "{answer:#}");
    let waited = &answer["after_drain"];
    assert!(waited["volumes_ms"].is_u64() && waited["volumes_attached"].is_null(), "{answer:#}");
    assert_eq!(completed(&stage).await, 1);
    let asked = asked_of_volumes(&mut stage);
    assert_eq!(asked[..2], ["get volumeattachments", "get persistentvolumes"]);
    assert!(asked[2..].iter().all(|asked| asked == "get volumeattachments"), "{asked:?}");
}
