//! Pods that a drain waits for, and pods that it does not wait for.
//!
//! Reason: API semantics.

use std::time::Duration;

use serde_json::json;
use spillway_bed::aws::Hook;
use spillway_bed::gateway::{Fault, Held, Rule, Side, Which};
use spillway_bed::kubelet;
use spillway_bed::pods::{self, PodShape};
use spillway_e2e::{Stage, assert_drained, receipt};

async fn bare(stage: &Stage, name: &str, shape: PodShape) {
    let pod = pods::bare_pod(&stage.name, name, &shape.on_node(&stage.node.name));
    pods::create(&stage.client(), &pod).await.expect("a pod");
    pods::until_running_of(&stage.client(), &stage.name, name, 1).await.expect("the pod runs");
}

#[tokio::test]
async fn pod_bound_between_the_list_and_the_watch_leaves() {
    let stage = Stage::set("between").await.with_own_stack().await;
    bare(&stage, "early", PodShape::default()).await;
    let (gateway, held) = (stage.through_gateway().await, Held::default());
    gateway.rules().add(Rule::new("list pods", Which::Nth(1), Fault::Hold(Side::After, held.clone())));

    let drain = stage.start_drain().await;
    held.reached().await;
    let late = pods::bare_pod(&stage.name, "late", &PodShape::default().bound_to(&stage.node.name));
    pods::create(&stage.client(), &late).await.expect("a bound pod");
    held.release();

    assert_drained(&drain.await.expect("no panic"), 2);
}

/// The budget would hold the hook for an hour: no pod counts as available until the node is back.
#[tokio::test]
async fn budget_of_a_dead_node_does_not_hold_its_hook() {
    let stage = Stage::set_in_group("dead-node", Hook::terminate("spillway")).await;
    let mut stage = stage.with_invocations_of(Duration::from_secs(110)).await;
    let client = stage.client();
    let tolerant = json!({"spec": {"tolerations": [{"operator": "Exists"}]}});
    bare(&stage, "db", PodShape::default().grace(1).with(tolerant)).await;
    pods::create_budget(&client, &pods::budget(&stage.name, "db", 1), 1).await.expect("the budget counts its pod");
    // A zone of its own: silent nodes of other tests do not count.
    stage.change_node(&json!({"metadata": {"labels": {"topology.kubernetes.io/zone": stage.name}}})).await;
    kubelet::silence(&client, &stage.node.name).await.expect("the kubelet is silent");

    let outcome = stage.lambda.invoke(stage.terminate().await).await;

    let receipt = receipt(&outcome);
    assert_eq!(
        (&receipt["ending"], &receipt["hook"]["state"]),
        (&json!("drained"), &json!("completed")),
        "{receipt:#}"
    );
    let requests = stage.requests();
    let deletions = requests.iter().filter(|request| request.verb == "delete" && request.resource == "pods");
    assert_eq!(deletions.count(), 1, "{requests:#?}");
    let zones = requests.iter().filter(|request| request.uri.contains("topology.kubernetes.io"));
    assert_eq!(zones.count(), 1, "the zone is read once: {requests:#?}");
}
