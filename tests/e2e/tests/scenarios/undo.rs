//! Uncordon: Spillway's marks go, and the changes of others stay.
//!
//! Reason: API semantics.

use kube::ResourceExt as _;
use serde_json::Value;
use spillway_bed::gateway::{Fault, Held, Rule, Side, Which};
use spillway_e2e::{Stage, ended, notice};

const EXCLUDED: &str = "node.kubernetes.io/exclude-from-external-load-balancers";
const MARKS: [(&str, &str); 2] = [("SPILLWAY_TAINTS", "spillway"), ("SPILLWAY_LOAD_BALANCERS", "exclude")];

/// EC2's notice of a state of the stage's instance.
async fn state_change(stage: &Stage, state: &str) -> Value {
    stage.delivered(&notice(&format!("state-change-{state}"), &stage.node.instance_id)).await
}

async fn drain_for_a_stop(stage: &Stage) {
    assert_eq!(ended(&stage.lambda.invoke(state_change(stage, "stopping").await).await).0, "drained");
}

/// Runs kubectl on the stage's node.
async fn kubectl(stage: &Stage, command: &str) {
    stage.world.kubectl(&[command, &stage.node.name]).await.expect("kubectl succeeds");
}

async fn assert_no_marks(stage: &Stage) {
    let node = stage.node_now().await;
    assert!(!node.annotations().contains_key("spillway/claim"), "{:?}", node.annotations());
    assert!(!node.labels().contains_key(EXCLUDED), "{:?}", node.labels());
    let taints = stage.taints().await;
    assert!(!taints.iter().any(|taint| taint.starts_with("spillway/")), "{taints:?}");
}

#[tokio::test]
async fn cordon_between_the_read_and_the_patch_stays() {
    let mut stage = Stage::set("in-between").await.with_settings(&MARKS).await;
    let gateway = stage.through_gateway().await;
    drain_for_a_stop(&stage).await;
    assert_eq!(stage.node_now().await.labels()[EXCLUDED], "spillway");
    assert!(stage.taints().await.iter().any(|taint| taint.starts_with("spillway/")));
    let held = Held::default();
    gateway.rules().add(Rule::new("patch nodes", Which::Nth(1), Fault::Hold(Side::Before, held.clone())));

    let event = state_change(&stage, "running").await;
    let (undo, ()) = tokio::join!(stage.lambda.invoke(event), async {
        held.reached().await;
        kubectl(&stage, "uncordon").await;
        kubectl(&stage, "cordon").await;
        held.release();
    });

    let node = &stage.node.name;
    let reason = "its instance runs again; it was cordoned again since our claim; the cordon stays";
    assert_eq!(ended(&undo), ("done".to_owned(), format!("node {node} has no marks of ours left: {reason}")));
    assert!(stage.is_cordoned().await);
    assert_no_marks(&stage).await;
    assert!(stage.node_requests().contains(&"patch 422".to_owned()));
}
