//! Drains that outlast their invocation: handed on by an event of their own, which comes back through
//! the product's own rule.

use std::time::Duration;

use spillway_bed::aws::Hook;
use spillway_bed::pods::PodShape;
use spillway_e2e::{Stage, fates};

/// Five seconds of it are kept back for the hook and for handing on.
const INVOCATION: Duration = Duration::from_secs(9);

#[tokio::test]
async fn a_drain_that_outlasts_its_invocation_goes_on_in_the_next_and_tells_its_history() {
    let stage = Stage::set_in_group("outlasts", Hook::terminate("drain")).await;
    let stage = stage.with_invocations_of(INVOCATION).await;
    stage.deploy("quick", 2, PodShape::default().exits_after(Duration::from_secs(1))).await;
    stage.deploy("slow", 1, PodShape::default().exits_after(Duration::from_secs(10))).await;

    let first = stage.lambda.invoke(stage.terminate().await).await;

    let answer = first.result.as_ref().expect("it is no failure");
    assert_eq!((&answer["ending"], &answer["hook"]["state"]), (&"continued".into(), &"held".into()), "{first:#?}");
    let node = &stage.node.name;
    let reason = format!("handed on to a later invocation: 1 of 3 pods were still on node {node} when the time was up");
    assert_eq!(answer["reason"], reason);

    let mut last = stage.lambda.invoke(stage.continuation().await).await;
    let mut invocations = 2;
    while last.result.as_ref().expect("it is no failure")["ending"] == "continued" {
        last = stage.lambda.invoke(stage.continuation().await).await;
        invocations += 1;
    }

    let answer = last.result.as_ref().expect("it drains");
    assert_eq!(answer["ending"], "drained", "{last:#?}");
    assert_eq!(answer["reason"], format!("all 3 pods that had to leave node {node} have gone"));
    assert_eq!(fates(answer)["clean"], 1, "what had gone before is not told twice");
    assert_eq!(answer["earlier"].as_array().expect("it has a history").len(), invocations - 1);
    assert_eq!(answer["earlier"][0]["request_id"], first.request_id);
    assert_eq!(answer["earlier"][0]["pods"], serde_json::json!({"clean": 2, "left": 1}));
    let instance = stage.world.aws_side().instance(&stage.node.instance_id).await.expect("it is known");
    assert_eq!(instance.actions[0].result.as_deref(), Some("CONTINUE"));
}
