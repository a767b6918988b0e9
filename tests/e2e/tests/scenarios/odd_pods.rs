//! An odd pod does not stop the drain of its neighbours: it leaves, stays or is named.
//!
//! Reason: API semantics.

use std::time::Duration;

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use spillway_bed::pods::{self, PodShape};
use spillway_e2e::{Stage, answer};

/// Name of the odd pod.
const ODD: &str = "odd";

/// A stage whose node has two ordinary pods.
async fn stage(name: &str) -> Stage {
    let stage = Stage::set(name).await;
    stage.deploy("web", 2, PodShape::default().grace(1).exits_after(Duration::from_millis(500))).await;
    stage
}

/// Runs a bare pod on the stage's node.
async fn odd_in(stage: &Stage, namespace: &str, shape: PodShape) -> Pod {
    let client = stage.client();
    let pod = pods::bare_pod(namespace, ODD, &shape.on_node(&stage.node.name));
    let pod = pods::create(&client, &pod).await.expect("a new object");
    pods::until_running_of(&client, namespace, ODD, 1).await.expect("the pod runs");
    pod
}

/// Drains the node for a spot notice, and asserts that the ordinary pods leave; returns the receipt.
async fn drained(stage: &Stage) -> Value {
    let outcome = stage.lambda.invoke(stage.interrupt().await).await;
    let receipt = answer(&outcome).clone();
    assert_eq!(receipt["ending"], "drained", "{receipt:#}");
    let is_web = |pod: &&Value| pod["pod"].as_str().is_some_and(|pod| pod.starts_with(&format!("{}/web-", stage.name)));
    let neighbours: Vec<&Value> = receipt["pods"].as_array().into_iter().flatten().filter(is_web).collect();
    assert_eq!(neighbours.len(), 2, "{receipt:#}");
    for pod in neighbours {
        assert_eq!((&pod["fate"], &pod["answers"]), (&json!("clean"), &json!({"evicted": 1})), "{receipt:#}");
    }
    receipt
}

/// The receipt's record of a pod.
fn record<'a>(receipt: &'a Value, name: &str) -> &'a Value {
    let is_named = |pod: &&Value| pod["pod"].as_str().is_some_and(|pod| pod.ends_with(&format!("/{name}")));
    receipt["pods"].as_array().into_iter().flatten().find(is_named).unwrap_or_else(|| panic!("{receipt:#}"))
}

/// Names of the pods on the node.
async fn on_node(stage: &Stage) -> Vec<String> {
    let pods = pods::on_node(&stage.client(), &stage.node.name).await.expect("a list");
    pods.iter().map(Pod::name_any).collect()
}

/// Answers to the evictions of a pod, in order.
fn evictions(stage: &mut Stage, name: &str) -> Vec<u16> {
    stage.requests().iter().filter(|r| r.is_eviction() && r.name == name).filter_map(|r| r.code).collect()
}

fn owned_by(api_version: &str, kind: &str) -> Value {
    let owner = json!({
        "apiVersion": api_version, "kind": kind, "name": "none", "controller": true,
        "uid": "00000000-0000-4000-8000-000000000000",
    });
    json!({"metadata": {"ownerReferences": [owner]}})
}

#[tokio::test]
async fn pods_of_all_kinds_leave_and_only_the_static_pod_stays() {
    let mut stage = stage("all-kinds").await;
    let client = stage.client();
    let create = async |name: &str, shape: PodShape| {
        pods::create(&client, &pods::bare_pod(&stage.name, name, &shape)).await.expect("a new object")
    };
    let on_its_node = || PodShape::default().on_node(&stage.node.name);
    let scratch = json!({"spec": {"volumes": [{"name": "scratch", "emptyDir": {}}]}});
    let mirror = json!({"metadata": {"annotations": {"kubernetes.io/config.mirror": "f00d"}}});
    let running = [
        ("bare", on_its_node()),
        ("scratch", on_its_node().with(scratch)),
        ("gadget", on_its_node().with(owned_by("example.test/v1", "Gadget"))),
        ("failed", on_its_node()),
        // Bound by the kubelet.
        ("static", PodShape::default().with(mirror).bound_to(&stage.node.name)),
    ];
    for (name, shape) in running {
        create(name, shape).await;
        pods::until_running_of(&client, &stage.name, name, 1).await.expect("the pod runs");
    }
    let failed = Patch::Merge(json!({"status": {"phase": "Failed"}}));
    let pods = Api::<Pod>::namespaced(client.clone(), &stage.name);
    pods.patch_status("failed", &PatchParams::default(), &failed).await.expect("the pod fails");
    create("done", on_its_node().completes_after(Duration::ZERO)).await;
    pods::until_succeeded(&client, &stage.name, "done").await.expect("the pod succeeds");
    let pending = create("pending", on_its_node().ready_after(Duration::from_secs(600))).await;
    let bound = pods::until_pod(&client, &pending, "to be bound", |pod| {
        pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref()).map(drop).ok_or_else(|| "not yet".to_owned())
    });
    bound.await.expect("the scheduler binds it");
    let agent = run_daemon_set(&stage).await.name_any();

    let receipt = drained(&stage).await;

    for name in ["bare", "scratch", "gadget", "failed", "done", "pending"] {
        assert_eq!(record(&receipt, name)["fate"], "clean", "{name}");
    }
    for (name, why) in [("static", "a static pod of the node"), (agent.as_str(), "a DaemonSet's pod")] {
        let stays = record(&receipt, name);
        assert_eq!((&stays["fate"], &stays["why"]), (&json!("stayed"), &json!(why)));
        assert!(evictions(&mut stage, name).is_empty());
    }
    assert_eq!(on_node(&stage).await, [agent.as_str(), "static"]);
}

/// Runs the DaemonSet `agent` on the stage's node.
async fn run_daemon_set(stage: &Stage) -> Pod {
    let agent = pods::daemon_set(&stage.name, "agent", &PodShape::default().on_node(&stage.node.name));
    pods::create(&stage.client(), &agent).await.expect("a new object");
    pods::until_running_of(&stage.client(), &stage.name, "agent", 1).await.expect("the pod runs").remove(0)
}

#[tokio::test]
async fn pod_orphaned_by_its_daemon_set_leaves() {
    let stage = stage("orphan").await;
    let client = stage.client();
    let pod = run_daemon_set(&stage).await;
    let daemon_sets = Api::<DaemonSet>::namespaced(client.clone(), &stage.name);
    daemon_sets.delete("agent", &DeleteParams::orphan()).await.expect("the object existed");
    let orphaned = pods::until_pod(&client, &pod, "to be an orphan", |pod| {
        if pod.owner_references().is_empty() { Ok(()) } else { Err("it has its owner".to_owned()) }
    });
    orphaned.await.expect("the garbage collector removes the owner");

    assert_eq!(record(&drained(&stage).await, &pod.name_any())["fate"], "clean");
    assert!(on_node(&stage).await.is_empty());
}

#[tokio::test]
async fn pod_of_a_deleted_daemon_set_stays_and_is_not_waited_for() {
    let stage = stage("dangling").await;
    // Bound: the garbage collector may delete the pod at any time, also before the scheduler binds it.
    let slow = PodShape::default().grace(600).exits_after(Duration::from_secs(600)).bound_to(&stage.node.name);
    let pod = pods::bare_pod(&stage.name, ODD, &slow.with(owned_by("apps/v1", "DaemonSet")));
    pods::create(&stage.client(), &pod).await.expect("a new object");

    assert_eq!(record(&drained(&stage).await, ODD)["fate"], "stayed");
}

#[tokio::test]
async fn pod_of_a_deleted_namespace_is_waited_for() {
    let mut stage = stage("leaving-namespace").await;
    let client = stage.client();
    let namespace = "leaving-namespace-own";
    pods::create_namespace(&client, namespace).await.expect("a namespace");
    let pod = odd_in(&stage, namespace, PodShape::default().exits_after(Duration::from_secs(15))).await;
    Api::<Namespace>::all(client.clone())
        .delete(namespace, &DeleteParams::default())
        .await
        .expect("the object existed");
    until_leaving(&stage, &pod).await;

    let receipt = drained(&stage).await;

    assert_eq!(record(&receipt, ODD)["fate"], "clean");
    assert!(evictions(&mut stage, ODD).is_empty());
    assert!(on_node(&stage).await.is_empty());
}

#[tokio::test]
async fn namespace_deleted_during_the_eviction_stops_no_drain() {
    let mut stage = stage("vanishing-namespace").await;
    let client = stage.client();
    let namespace = "vanishing-namespace-own";
    pods::create_namespace(&client, namespace).await.expect("a namespace");
    let pod = odd_in(&stage, namespace, PodShape::default().exits_after(Duration::from_secs(8))).await;

    let outcome = stage
        .drain_with("create pods/eviction", async || {
            let namespaces = Api::<Namespace>::all(client.clone());
            namespaces.delete(namespace, &DeleteParams::default()).await.expect("the object existed");
            until_leaving(&stage, &pod).await;
        })
        .await;

    let receipt = answer(&outcome);
    assert_eq!((&receipt["ending"], &record(receipt, ODD)["fate"]), (&json!("drained"), &json!("clean")));
    let answers = evictions(&mut stage, ODD);
    assert!(!answers.is_empty() && answers.iter().all(|code| *code == 403), "{answers:?}");
    assert!(on_node(&stage).await.is_empty());
}

async fn until_leaving(stage: &Stage, pod: &Pod) {
    let client = stage.client();
    let leaving = pods::until_pod(&client, pod, "to be leaving", |pod| {
        pod.metadata.deletion_timestamp.as_ref().map(drop).ok_or_else(|| "not yet".to_owned())
    });
    leaving.await.expect("the object existed");
}

#[tokio::test]
async fn stopped_pod_with_a_finalizer_is_not_waited_for() {
    let stage = stage("finalizer").await;
    let kept = json!({"metadata": {"finalizers": ["spillway.test/kept"]}});
    odd_in(&stage, &stage.name, PodShape::default().with(kept)).await;

    assert_eq!(record(&drained(&stage).await, ODD)["fate"], "clean");

    assert_eq!(on_node(&stage).await, [ODD], "the finalizer keeps the object");
    let pods = Api::<Pod>::namespaced(stage.client(), &stage.name);
    let released = Patch::Merge(json!({"metadata": {"finalizers": []}}));
    pods.patch(ODD, &PatchParams::default(), &released).await.expect("the finalizer is removed");
}

#[tokio::test]
async fn absurd_grace_periods_are_clamped_to_the_window() {
    let stage = stage("absurd-grace").await;
    let client = stage.client();
    let graces = [("zero", 0), ("negative", -5), ("huge", 1_i64 << 31), ("largest", i64::MAX)];
    for (name, seconds) in graces {
        let shape = PodShape::default().exits_after(Duration::from_secs(1)).on_node(&stage.node.name);
        let shape = shape.with(json!({"spec": {"terminationGracePeriodSeconds": seconds}}));
        pods::create(&client, &pods::bare_pod(&stage.name, name, &shape)).await.expect("a new object");
        pods::until_running_of(&client, &stage.name, name, 1).await.expect("the pod runs");
    }

    let receipt = drained(&stage).await;

    let fates = graces.map(|(name, _)| (name, record(&receipt, name)["fate"].as_str().unwrap_or_default()));
    assert_eq!(fates, [("zero", "clean"), ("negative", "clean"), ("huge", "clamped"), ("largest", "clamped")]);
    assert_eq!(record(&receipt, "huge")["grace_s"], 1_i64 << 31);
    assert!(on_node(&stage).await.is_empty());
}
