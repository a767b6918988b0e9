//! Lifecycle hooks after the last pod has gone.
//!
//! Reason: API semantics.

use spillway_bed::aws::Hook;
use spillway_bed::pods::{self, PodShape};
use spillway_bed::volumes::{AttachedVolume, with_claim};
use spillway_e2e::{Stage, answer};

async fn completions(stage: &Stage) -> usize {
    stage.aws_calls().await.iter().filter(|call| call.ends_with("CompleteLifecycleAction")).count()
}

#[tokio::test]
async fn hook_is_completed_after_the_volume_is_detached() {
    let mut stage = Stage::set_in_group("detached", Hook::terminate("spillway")).await;
    let client = stage.client();
    let volume = AttachedVolume::create(&client, (&stage.name, "data"), &stage.node.name).await.expect("a volume");
    // Bound: the scheduler would wait for the claim.
    let shape = with_claim(PodShape::default().bound_to(&stage.node.name), "data");
    pods::create(&client, &pods::bare_pod(&stage.name, "db-0", &shape)).await.expect("a pod");
    pods::until_running_of(&client, &stage.name, "db-0", 1).await.expect("the pod runs");

    let (lambda, event) = (stage.lambda.clone(), stage.terminate().await);
    let drain = tokio::spawn(async move { lambda.invoke(event).await });
    stage.until_requests("a wait", |made| made.iter().any(|made| made.resource == "volumeattachments")).await;
    assert_eq!(completions(&stage).await, 0);
    volume.detach().await.expect("the volume was attached");

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
