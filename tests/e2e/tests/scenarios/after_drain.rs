//! When the last pod has gone: what a hook is held for still.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use serde_json::json;
use spillway_bed::audit::Request;
use spillway_bed::aws::Hook;
use spillway_bed::gateway::{Fault, Held, Rule, Side, Which};
use spillway_bed::pods::{self, PodShape};
use spillway_bed::volumes::{AttachedVolume, with_claim};
use spillway_e2e::{Stage, fates};
use tokio::time::sleep;

/// How long a volume takes to be unmounted and detached when its pod has gone.
const DETACHING: Duration = Duration::from_secs(5);

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

#[tokio::test]
async fn a_blocked_pod_is_forced_early_enough_for_its_volume_to_be_detached_before_the_hooks_end() {
    let settings = [("SPILLWAY_HOOK_MAX_WAIT_S", "60")];
    let stage = Stage::set_in_group("forced-volume", Hook::terminate("spillway")).await.with_settings(&settings).await;
    let (volume, client) = (attached(&stage, "data", "ReadWriteOnce").await, stage.world.admin());
    let shape = PodShape::default().grace(5).exits_after(Duration::from_secs(4));
    let pod = run(&stage, "db-0", shape, "data").await;
    pods::create(&client, &pods::budget(&stage.name, "db-0", 1)).await.expect("a budget");
    pods::until_budget_sees(&client, &stage.name, "db-0", 1).await.expect("it counts");
    let detaches = async {
        pods::until_gone(&client, &pod).await.expect("it is forced");
        sleep(DETACHING).await;
        volume.detach().await.expect("it was attached");
    };

    let (outcome, ()) = tokio::join!(stage.lambda.invoke(stage.terminate().await), detaches);

    let answer = outcome.result.as_ref().expect("it drains");
    assert_eq!((fates(answer)["forced"], &answer["hook"]["state"]), (1, &json!("completed")), "{answer:#}");
    let waited = &answer["after_drain"];
    assert!(waited["volumes_ms"].is_u64() && waited["volumes_attached"].is_null(), "{answer:#}");
}

#[tokio::test]
async fn volumes_that_several_nodes_may_have_and_those_of_pods_that_stay_hold_no_hook() {
    let (mut stage, own) = with_a_volume("not-waited-for").await;
    own.detach().await.expect("it was attached");
    let _shared = attached(&stage, "shared", "ReadWriteMany").await;
    run(&stage, "web-0", PodShape::default(), "shared").await;
    let _agents = attached(&stage, "agents", "ReadWriteOnce").await;
    let mirror = json!({"metadata": {"annotations": {"kubernetes.io/config.mirror": "hash"}}});
    run(&stage, "agent", PodShape::default().with(mirror), "agents").await;

    let outcome = stage.lambda.invoke(stage.terminate().await).await;

    let answer = outcome.result.as_ref().expect("it drains");
    assert_eq!(fates(answer), [("clean".to_owned(), 2), ("stayed".to_owned(), 1)].into(), "{answer:#}");
    assert_eq!(
        (&answer["hook"]["state"], &answer["after_drain"]["volumes_attached"]),
        (&"completed".into(), &().into())
    );
    let asked = asked_of_volumes(&mut stage);
    assert!(
        asked.iter().filter(|asked| *asked == "get volumeattachments").count() <= 3,
        "each is read once: {asked:?}"
    );
}

/// cluster-autoscaler drains a node and waits for its pods, but not for their volumes.
#[tokio::test]
async fn a_hook_is_completed_after_the_volume_is_detached_of_a_pod_that_others_evicted() {
    let mut stage = Stage::set_in_group("drained-before", Hook::terminate("spillway")).await;
    let volume = attached(&stage, "data", "ReadWriteOnce").await;
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
}

#[tokio::test]
async fn a_pod_that_is_bound_after_the_cordon_is_evicted_before_the_hook_is_completed() {
    let mut stage = Stage::set_in_group("bound-late", Hook::terminate("spillway")).await;
    let gateway = stage.through_gateway().await;
    let listed = Held::default();
    gateway.rules().add(Rule::new("list pods", Which::Nth(1), Fault::Hold(Side::After, listed.clone())));
    let (lambda, event) = (stage.lambda.clone(), stage.terminate().await);
    let drain = tokio::spawn(async move { lambda.invoke(event).await });
    listed.reached().await;
    assert!(stage.is_cordoned().await);
    let late = pods::bare_pod(&stage.name, "late", &PodShape::default().bound_to(&stage.node.name));
    let late = pods::create(&stage.world.admin(), &late).await.expect("it is created");
    listed.release();

    let outcome = drain.await.expect("no panic");

    let answer = outcome.result.as_ref().expect("it drains");
    assert_eq!((&answer["ending"], &answer["hook"]["state"]), (&"drained".into(), &"completed".into()), "{answer:#}");
    assert_eq!(fates(answer)["clean"], 1, "{answer:#}");
    pods::until_gone(&stage.world.admin(), &late).await.expect("it has gone");
    let evictions = stage.requests().into_iter().filter(|request| request.contains("eviction"));
    assert_eq!(evictions.count(), 1);
    let (gone, completed) = (&answer["pods"][0]["gone_ms"], answer["steps"].as_array().and_then(|steps| steps.last()));
    let completed = completed.filter(|last| last["step"] == "completed").expect("the hook is completed last");
    assert!(gone.as_i64() <= completed["at_ms"].as_i64(), "{answer:#}");
}

#[tokio::test]
async fn a_hook_is_completed_after_the_load_balancer_has_let_the_instance_go() {
    let settings = [("SPILLWAY_LOAD_BALANCERS", "wait")];
    let stage = Stage::set_in_group("targets", Hook::terminate("spillway")).await.with_settings(&settings).await;
    let (aws, instance) = (stage.world.aws_side(), &stage.node.instance_id);
    aws.register_target(instance, &stage.world.cluster).await.expect("it is registered");
    let (lambda, event) = (stage.lambda.clone(), stage.terminate().await);
    let drain = tokio::spawn(async move { lambda.invoke(event).await });
    stage.until_called("elasticloadbalancing:DescribeTargetHealth", 2).await;
    assert_eq!(completed(&stage).await, 0);
    assert!(stage.node_now().await.labels().contains_key("node.kubernetes.io/exclude-from-external-load-balancers"));
    aws.deregister_target(instance).await.expect("it was registered");

    let outcome = drain.await.expect("no panic");

    let answer = outcome.result.as_ref().expect("it drains");
    assert_eq!((&answer["ending"], &answer["hook"]["state"]), (&"drained".into(), &"completed".into()), "{answer:#}");
    let waited = &answer["after_drain"];
    assert!(waited["targets_ms"].is_u64() && waited["targets_left"].is_null(), "{answer:#}");
    assert_eq!(completed(&stage).await, 1);
    let calls = stage.aws_calls().await;
    for of_role in ["DescribeTags", "DescribeTargetGroups"] {
        assert_eq!(calls.iter().filter(|call| **call == format!("elasticloadbalancing:{of_role}")).count(), 1);
    }
}
