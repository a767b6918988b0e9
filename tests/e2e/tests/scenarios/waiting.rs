//! What a drain waits for, and what it does not.
//!
//! Reason: API semantics.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use serde_json::{Value, json};
use spillway_bed::aws::Hook;
use spillway_bed::gateway::{Fault, Held, Rule, Side, Which};
use spillway_bed::kubelet;
use spillway_bed::pods::{self, PodShape};
use spillway_e2e::{Stage, fates, receipt};
use tokio::task::JoinHandle;

const SPOT: Duration = Duration::from_secs(120);

/// Starts the drain of a spot notice.
async fn interrupted(stage: &Stage) -> JoinHandle<Value> {
    let event = stage.interrupt(SPOT).await;
    let lambda = stage.lambda.clone();
    tokio::spawn(async move { lambda.invoke(event).await.result.expect("it drains") })
}

async fn bare(stage: &Stage, name: &str, shape: PodShape) -> Pod {
    let client = stage.world.admin();
    let before = pods::on_node(&client, &stage.node.name).await.expect("a list").len();
    let pod = pods::bare_pod(&stage.name, name, &shape.on_node(&stage.node.name));
    pods::create(&client, &pod).await.expect("it is created");
    let running = pods::until_running_on(&client, &stage.node.name, before + 1).await.expect("it runs");
    running.into_iter().find(|pod| pod.name_any() == name).expect("it is there")
}

#[tokio::test]
async fn a_pod_that_is_bound_between_the_list_and_the_watch_leaves_too() {
    let stage = Stage::set("between").await;
    bare(&stage, "early", PodShape::default()).await;
    let gateway = stage.through_gateway().await;
    let held = Held::default();
    gateway.rules().add(Rule::new("list pods", Which::Nth(1), Fault::Hold(Side::After, held.clone())));

    let drain = interrupted(&stage).await;
    held.reached().await;
    let mut late = pods::bare_pod(&stage.name, "late", &PodShape::default());
    late.spec.as_mut().expect("it has a spec").node_name = Some(stage.node.name.clone());
    pods::create(&stage.world.admin(), &late).await.expect("it is bound");
    held.release();

    let answer = drain.await.expect("no panic");
    assert_eq!(fates(&answer)["clean"], 2, "the list did not have it: {answer:#}");
}

#[tokio::test]
async fn a_node_that_has_stopped_answering_is_not_waited_for() {
    let mut stage = Stage::set("silent").await;
    bare(&stage, "lost", PodShape::default().grace(1)).await;
    kubelet::silence(&stage.world.admin(), &stage.node.name).await.expect("it says no more");

    let answer = interrupted(&stage).await.await.expect("no panic");

    assert_eq!(answer["ending"], "drained", "{answer:#}");
    assert!(answer["reason"].as_str().is_some_and(|reason| reason.contains("has stopped answering")), "{answer:#}");
    let pod = &answer["pods"][0];
    assert_eq!((&pod["fate"], &pod["answers"]), (&json!("unconfirmed"), &json!({"evicted": 1})));
    let looks = stage.requests().into_iter().filter(|request| request.starts_with("list nodes")).count();
    assert_eq!(looks, 1, "{:#?}", stage.requests());
}

/// The budget would hold its hook for an hour: nothing counts as available until the node comes back.
#[tokio::test]
async fn the_hook_of_a_dead_node_is_not_held_by_the_budget_of_a_pod_that_does_not_run() {
    let mut stage = Stage::set_in_group("dead-node", Hook::terminate("spillway")).await;
    stage = stage.with_invocations_of(Duration::from_secs(110)).await;
    let client = stage.world.admin();
    bare(&stage, "db", PodShape::default().grace(1).with(json!({"spec": {"tolerations": [{"operator": "Exists"}]}})))
        .await;
    pods::create(&client, &pods::budget(&stage.name, "db", 1)).await.expect("a budget");
    pods::until_budget_sees(&client, &stage.name, "db", 1).await.expect("it counts");
    // Alone in its zone, so that it does not matter how many nodes of other tests are silent.
    stage.change_node(&json!({"metadata": {"labels": {"topology.kubernetes.io/zone": stage.name}}})).await;
    kubelet::silence(&client, &stage.node.name).await.expect("it says no more");

    let outcome = stage.lambda.invoke(stage.terminate().await).await;

    let told = receipt(&outcome);
    assert_eq!((&told["ending"], &told["hook"]["state"]), (&json!("drained"), &json!("completed")), "{told:#}");
    let requests = stage.audit.requests().expect("the audit log");
    let deletions = requests.iter().filter(|request| request.verb == "delete" && request.resource == "pods");
    assert_eq!(deletions.count(), 1, "{requests:#?}");
    let zones = requests.iter().filter(|request| request.uri.contains("topology.kubernetes.io"));
    assert_eq!(zones.count(), 1, "its zone is looked at once: {requests:#?}");
}
