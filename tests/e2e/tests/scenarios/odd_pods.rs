//! One odd pod never stops the others: it leaves, stays or is named, and its neighbours are drained.
//!
//! Reason: API semantics.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use spillway_bed::pods::{self, PodShape};
use spillway_e2e::Stage;

const SPOT: Duration = Duration::from_secs(120);
/// What a bare pod is called here.
const ODD: &str = "odd";

/// A stage whose node has two ordinary pods.
async fn stage(name: &str) -> Stage {
    let stage = Stage::set(name).await;
    stage.deploy("web", 2, PodShape::default().grace(1).exits_after(Duration::from_millis(500))).await;
    stage
}

/// A bare pod on the stage's node.
async fn odd(stage: &Stage, shape: PodShape) -> Pod {
    odd_in(stage, &stage.name, shape).await
}

async fn odd_in(stage: &Stage, namespace: &str, shape: PodShape) -> Pod {
    let client = stage.world.admin();
    let pod = pods::bare_pod(namespace, ODD, &shape.on_node(&stage.node.name));
    let pod = pods::create(&client, &pod).await.expect("it is created");
    pods::until_running_of(&client, namespace, ODD, 1).await.expect("it runs");
    pod
}

/// Drains the node by a spot notice, and answers the receipt.
async fn drained(stage: &Stage) -> Value {
    drained_by(stage, stage.interrupt(SPOT).await).await
}

/// Drains the node, sees that the ordinary pods left as ever, and answers the receipt.
async fn drained_by(stage: &Stage, event: Value) -> Value {
    let outcome = stage.deliver(event).await;
    let receipt = outcome.result.as_ref().unwrap_or_else(|error| panic!("{error} {:#?}", outcome.logs)).clone();
    assert_eq!(receipt["ending"], "drained", "{receipt:#}");
    let neighbours: Vec<&Value> = records(&receipt, &format!("{}/web-", stage.name)).collect();
    assert_eq!(neighbours.len(), 2, "{receipt:#}");
    for pod in neighbours {
        assert_eq!((&pod["fate"], &pod["answers"]), (&json!("clean"), &json!({"evicted": 1})), "{receipt:#}");
    }
    receipt
}

fn records<'a>(receipt: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    let is_named = move |pod: &&Value| pod["pod"].as_str().is_some_and(|pod| pod.starts_with(name));
    receipt["pods"].as_array().into_iter().flatten().filter(is_named)
}

/// What the receipt says of a pod, by its name.
fn record<'a>(receipt: &'a Value, name: &str) -> &'a Value {
    let is_named = |pod: &&Value| pod["pod"].as_str().is_some_and(|pod| pod.ends_with(&format!("/{name}")));
    receipt["pods"].as_array().into_iter().flatten().find(is_named).unwrap_or_else(|| panic!("{receipt:#}"))
}

/// The names of the pods on the node.
async fn on_node(stage: &Stage) -> Vec<String> {
    let pods = pods::on_node(&stage.world.admin(), &stage.node.name).await.expect("a list");
    pods.iter().map(Pod::name_any).collect()
}

/// What the API server answered to the evictions of a pod, in order.
fn evictions(stage: &mut Stage, name: &str) -> Vec<u16> {
    let requests = stage.audit.requests().expect("the audit log");
    requests.iter().filter(|r| r.subresource == "eviction" && r.name == name).filter_map(|r| r.code).collect()
}

fn owned_by(api_version: &str, kind: &str) -> Value {
    let owner = json!({
        "apiVersion": api_version, "kind": kind, "name": "nobody", "controller": true,
        "uid": "00000000-0000-4000-8000-000000000000",
    });
    json!({"metadata": {"ownerReferences": [owner]}})
}

#[tokio::test]
async fn pods_leave_whatever_they_are_and_only_the_nodes_static_pod_stays() {
    let mut stage = stage("all-kinds").await;
    let client = stage.world.admin();
    let create = async |name: &str, shape: PodShape| {
        pods::create(&client, &pods::bare_pod(&stage.name, name, &shape)).await.expect("it is created")
    };
    let on_its_node = || PodShape::default().on_node(&stage.node.name);
    let scratch = json!({"spec": {"volumes": [{"name": "scratch", "emptyDir": {}}]}});
    let mirror = json!({"metadata": {"annotations": {"kubernetes.io/config.mirror": "f00d"}}});
    let running = [
        ("bare", on_its_node()),
        ("scratch", on_its_node().with(scratch)),
        ("gadget", on_its_node().with(owned_by("example.test/v1", "Gadget"))),
        ("failed", on_its_node()),
        // Its kubelet binds it.
        ("static", PodShape::default().with(mirror).bound_to(&stage.node.name)),
    ];
    for (name, shape) in running {
        create(name, shape).await;
        pods::until_running_of(&client, &stage.name, name, 1).await.expect("it runs");
    }
    let failed = Patch::Merge(json!({"status": {"phase": "Failed"}}));
    let pods = Api::<Pod>::namespaced(client.clone(), &stage.name);
    pods.patch_status("failed", &PatchParams::default(), &failed).await.expect("it fails");
    create("done", on_its_node().completes_after(Duration::ZERO)).await;
    pods::until_succeeded(&client, &stage.name, "done").await.expect("it ends");
    let pending = create("pending", on_its_node().ready_after(Duration::from_secs(600))).await;
    let bound = pods::until_pod(&client, &pending, "to be bound", |pod| {
        pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref()).map(drop).ok_or_else(|| "it is not".to_owned())
    });
    bound.await.expect("the scheduler binds it");

    let receipt = drained(&stage).await;

    for name in ["bare", "scratch", "gadget", "failed", "done", "pending"] {
        assert_eq!(record(&receipt, name)["fate"], "clean", "{name}");
    }
    let stays = record(&receipt, "static");
    assert_eq!((&stays["fate"], &stays["why"]), (&json!("stayed"), &json!("a static pod of the node")));
    assert!(evictions(&mut stage, "static").is_empty());
    assert_eq!(on_node(&stage).await, ["static"]);
}

#[tokio::test]
async fn a_pod_that_its_daemon_set_left_behind_leaves() {
    let stage = stage("orphan").await;
    let client = stage.world.admin();
    let agent = pods::daemon_set(&stage.name, "agent", &PodShape::default().on_node(&stage.node.name));
    pods::create(&client, &agent).await.expect("it is created");
    let pod = pods::until_running_of(&client, &stage.name, "agent", 1).await.expect("it runs").remove(0);
    let daemon_sets = Api::<DaemonSet>::namespaced(client.clone(), &stage.name);
    daemon_sets.delete("agent", &DeleteParams::orphan()).await.expect("it is deleted");
    let orphaned = pods::until_pod(&client, &pod, "to be an orphan", |pod| {
        if pod.owner_references().is_empty() { Ok(()) } else { Err("it has its owner".to_owned()) }
    });
    orphaned.await.expect("the garbage collector takes its owner away");

    assert_eq!(record(&drained(&stage).await, &pod.name_any())["fate"], "clean");
    assert!(on_node(&stage).await.is_empty());
}

#[tokio::test]
async fn a_pod_whose_daemon_set_is_not_there_stays_for_the_garbage_collector_and_is_not_waited_for() {
    let stage = stage("dangling").await;
    // The garbage collector may come before the drain or after it; the pod takes its time either way. One
    // that waited for the scheduler might be gone before it is bound.
    let slow = PodShape::default().grace(600).exits_after(Duration::from_secs(600)).bound_to(&stage.node.name);
    let pod = pods::bare_pod(&stage.name, ODD, &slow.with(owned_by("apps/v1", "DaemonSet")));
    pods::create(&stage.world.admin(), &pod).await.expect("it is created");

    assert_eq!(record(&drained(&stage).await, ODD)["fate"], "stayed");
}

#[tokio::test]
async fn a_pod_whose_namespace_is_being_deleted_is_waited_for() {
    let mut stage = stage("leaving-namespace").await;
    let client = stage.world.admin();
    let namespace = "leaving-namespace-own";
    pods::create_namespace(&client, namespace).await.expect("a namespace");
    let pod = odd_in(&stage, namespace, PodShape::default().exits_after(Duration::from_secs(15))).await;
    Api::<Namespace>::all(client.clone()).delete(namespace, &DeleteParams::default()).await.expect("it is deleted");
    until_leaving(&stage, &pod).await;

    let receipt = drained(&stage).await;

    assert_eq!(record(&receipt, ODD)["fate"], "clean");
    assert!(evictions(&mut stage, ODD).is_empty());
    assert!(on_node(&stage).await.is_empty());
}

#[tokio::test]
async fn a_namespace_that_is_deleted_while_its_pod_is_evicted_stops_nobody() {
    let mut stage = stage("vanishing-namespace").await;
    let client = stage.world.admin();
    let namespace = "vanishing-namespace-own";
    pods::create_namespace(&client, namespace).await.expect("a namespace");
    let pod = odd_in(&stage, namespace, PodShape::default().exits_after(Duration::from_secs(8))).await;

    let outcome = stage
        .drain_with("create pods/eviction", async || {
            Api::<Namespace>::all(client.clone())
                .delete(namespace, &DeleteParams::default())
                .await
                .expect("it is deleted");
            until_leaving(&stage, &pod).await;
        })
        .await;

    let receipt = outcome.result.as_ref().expect("it drains");
    assert_eq!(receipt["ending"], "drained");
    assert_eq!(record(receipt, ODD)["fate"], "clean");
    let answers = evictions(&mut stage, ODD);
    assert!(!answers.is_empty() && answers.iter().all(|code| *code == 403), "{answers:?}");
    assert!(on_node(&stage).await.is_empty());
}

async fn until_leaving(stage: &Stage, pod: &Pod) {
    let client = stage.world.admin();
    let leaving = pods::until_pod(&client, pod, "to be leaving", |pod| {
        pod.metadata.deletion_timestamp.as_ref().map(drop).ok_or_else(|| "it is not".to_owned())
    });
    leaving.await.expect("it is deleted");
}

#[tokio::test]
async fn a_pod_with_a_finalizer_is_no_longer_waited_for_when_it_has_stopped() {
    let stage = stage("finalizer").await;
    let kept = json!({"metadata": {"finalizers": ["spillway.test/kept"]}});
    odd(&stage, PodShape::default().with(kept)).await;

    assert_eq!(record(&drained(&stage).await, ODD)["fate"], "clean");

    assert_eq!(on_node(&stage).await, [ODD], "only the finalizer keeps its object");
    let pods = Api::<Pod>::namespaced(stage.world.admin(), &stage.name);
    let released = Patch::Merge(json!({"metadata": {"finalizers": []}}));
    pods.patch(ODD, &PatchParams::default(), &released).await.expect("it is released");
}

#[tokio::test]
async fn absurd_grace_periods_are_given_as_far_as_there_is_time() {
    let stage = stage("absurd-grace").await;
    let client = stage.world.admin();
    let asked = [("zero", 0), ("negative", -5), ("huge", 1_i64 << 31), ("largest", i64::MAX)];
    for (name, seconds) in asked {
        let shape = PodShape::default().exits_after(Duration::from_secs(1)).on_node(&stage.node.name);
        let shape = shape.with(json!({"spec": {"terminationGracePeriodSeconds": seconds}}));
        pods::create(&client, &pods::bare_pod(&stage.name, name, &shape)).await.expect("it is created");
        pods::until_running_of(&client, &stage.name, name, 1).await.expect("it runs");
    }

    let receipt = drained(&stage).await;

    let fates = asked.map(|(name, _)| (name, record(&receipt, name)["fate"].as_str().unwrap_or_default()));
    assert_eq!(fates, [("zero", "clean"), ("negative", "clean"), ("huge", "clamped"), ("largest", "clamped")]);
    assert_eq!(record(&receipt, "huge")["grace_s"], 1_i64 << 31);
    assert!(on_node(&stage).await.is_empty());
}

/// The API server takes 256 KiB of annotations, and etcd 1.5 MiB of an object: this has a little less of each.
#[tokio::test]
async fn a_pod_as_large_as_the_api_server_takes_leaves() {
    let stage = stage("large").await;
    let annotations: BTreeMap<String, String> =
        (0..10_000).map(|number| (format!("example.test/{number:05}"), "12345".to_owned())).collect();
    let container = json!({
        "name": "main", "image": "example.test/main",
        "env": [{"name": "LARGE", "value": "x".repeat(930 * 1024)}],
    });
    let large = json!({"metadata": {"annotations": annotations}, "spec": {"containers": [container]}});
    let pod = odd(&stage, PodShape::default().with(large)).await;
    let size = serde_json::to_string(&pod).expect("it is JSON").len();
    assert!(size > 1_500_000, "it has {size} bytes");

    assert_eq!(record(&drained(&stage).await, ODD)["fate"], "clean");
    assert!(on_node(&stage).await.is_empty());
}
