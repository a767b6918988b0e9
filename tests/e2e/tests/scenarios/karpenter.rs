//! Karpenter's nodes are handed to Karpenter with the deadline.
//!
//! Reason: API semantics.

use jiff::Timestamp;
use kube::ResourceExt as _;
use serde_json::{Value, json};
use spillway_bed::NodeOptions;
use spillway_bed::karpenter::{NodeClaim, TERMINATION_TIMESTAMP, create_claim, node_claims};
use spillway_e2e::{SPOT, Stage, answer, world};

/// A stage with a node of Karpenter, in a pool with the stage's name.
async fn set(name: &str) -> (Stage, NodeClaim) {
    let claim = create_claim(world().await, name).await.expect("a NodeClaim");
    let node = NodeOptions { node_claim: Some(claim.clone()), ..NodeOptions::spot() };
    (Stage::set_with(name, node).await.with_settings(&[("SPILLWAY_KARPENTER", "nodeclaim")]).await, claim)
}

async fn now(stage: &Stage, claim: &NodeClaim) -> NodeClaim {
    node_claims(&stage.client()).get(&claim.name_any()).await.expect("the finalizer keeps the claim")
}

/// Deadline of a spot notice.
fn deadline(event: &Value) -> Timestamp {
    let time: Timestamp = event["time"].as_str().expect("a time").parse().expect("RFC 3339");
    time + SPOT
}

fn deadline_of(claim: &NodeClaim) -> Option<Timestamp> {
    claim.annotations().get(TERMINATION_TIMESTAMP).and_then(|text| text.parse().ok())
}

#[tokio::test]
async fn nodeclaim_gets_the_deadline_and_is_deleted() {
    let (mut stage, claim) = set("handed").await;
    stage.deploy_quick("web", 2).await;
    let event = stage.interrupt().await;

    let outcome = stage.lambda.invoke(&event).await;

    let (node, name, until) = (&stage.node.name, claim.name_any(), deadline(&event));
    let answer = answer(&outcome);
    assert_eq!((&answer["ending"], &answer["node"]), (&json!("done"), &json!(node)), "{outcome:#?}");
    let reason = format!("NodeClaim {name} is deleted: Karpenter replaces node {node} and drains it by {until}");
    assert_eq!(answer["reason"], reason);
    let expected = [
        format!("get nodes {node} → 200"),
        format!("get nodeclaims {name} → 200"),
        format!("patch nodeclaims {name} → 200"),
        format!("delete nodeclaims {name} → 200"),
    ];
    let claim = now(&stage, &claim).await;
    assert_eq!((claim.metadata.deletion_timestamp.is_some(), deadline_of(&claim)), (true, Some(until)));
    assert_eq!(stage.request_lines(), expected);
}
