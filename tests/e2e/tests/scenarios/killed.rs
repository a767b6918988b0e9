//! An invocation that is killed at each try keeps its event and its claim.
//!
//! Reason: process.

use std::pin::pin;

use kube::ResourceExt as _;
use serde_json::Value;
use spillway_bed::gateway::{Fault, Held, Rule, Side, Which};
use spillway_bed::pods::PodShape;
use spillway_e2e::Stage;

#[tokio::test]
async fn drain_killed_at_every_try_keeps_its_event_and_its_claim() {
    let stage = Stage::set("killed-always").await.with_own_stack().await;
    stage.deploy("web", 2, PodShape::default()).await;
    let (gateway, held) = (stage.through_gateway().await, Held::default());
    gateway.rules().add(Rule::new("list pods", Which::All, Fault::Hold(Side::After, held.clone())));
    let event = stage.interrupt().await;

    let mut delivery = pin!(stage.lambda.invoke_async(&event));
    let delivery = loop {
        tokio::select! {
            delivery = &mut delivery => break delivery.expect("the queue works"),
            () = held.reached() => stage.lambda.kill(),
        }
    };

    assert_eq!(delivery.failed.len(), 2);
    assert_eq!(delivery.failure_record.expect("a record")["requestPayload"], event);
    let node = stage.node_now().await;
    let claim: Value = serde_json::from_str(&node.annotations()["spillway/claim"]).expect("the annotation is JSON");
    assert!(stage.is_cordoned().await);
    assert_eq!((&claim["event"], &claim["cordoned"]), (&event["id"], &true.into()));
}
