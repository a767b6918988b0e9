//! A notice in the middle of an update: Lambda changes code and variables in two steps, so that one of them is another
//! version's for a moment. And what the version before has told itself, in the midst of a drain or weeks ago.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use spillway_bed::aws::Hook;
use spillway_bed::lambda::{Account, Lambda, LambdaOptions};
use spillway_bed::pods::PodShape;
use spillway_e2e::maintenance::{Maintenance, in_s};
use spillway_e2e::{Stage, receipt};

/// What the template gave the function before `DrainOn` and `Taints` took the place of several parameters.
const BEFORE: [(&str, &str); 9] = [
    ("SPILLWAY_SPOT", "drain"),
    ("SPILLWAY_REBALANCE", "ignore"),
    ("SPILLWAY_TERMINATE", "drain"),
    ("SPILLWAY_LAUNCH", "ignore"),
    ("SPILLWAY_KARPENTER", "leave"),
    ("SPILLWAY_HEARTBEAT_S", "half"),
    ("SPILLWAY_HELD_PODS", "keep"),
    ("SPILLWAY_TAINT", "none"),
    ("SPILLWAY_DRY_RUN", "false"),
];
/// Of a version that is still to come.
const AFTER: [(&str, &str); 2] = [("SPILLWAY_FROM_A_LATER_VERSION", "yes"), ("SPILLWAY_DRAIN_ON", "spot")];

#[tokio::test]
async fn the_function_drains_with_the_variables_of_the_version_before_or_after() {
    for (name, variables, unknown) in
        [("new-code", &BEFORE[..], "SPILLWAY_HELD_PODS"), ("old-code", &AFTER[..], "SPILLWAY_FROM_A_LATER_VERSION")]
    {
        let stage = Stage::set(name).await;
        stage.deploy("web", 2, PodShape::default()).await;
        let credentials = stage.world.aws_side().credentials("spillway-drain", name).await.expect("credentials");
        let account = Account {
            endpoint: stage.world.aws.clone(),
            region: stage.world.region.clone(),
            id: stage.world.account.clone(),
            credentials,
        };
        // Nothing of the template's of today beside them.
        let env = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let options = LambdaOptions { function_name: name.to_owned(), env, ..LambdaOptions::default() };
        let lambda = Lambda::in_account(account, options);

        let outcome = lambda.invoke(stage.interrupt(Duration::from_secs(120)).await).await;

        assert_eq!(receipt(&outcome)["ending"], "drained", "{outcome:#?}");
        let warned = outcome.logs.iter().any(|line| line.contains(&format!("{unknown} is no setting of this version")));
        assert!(warned, "{outcome:#?}");
    }
}

/// What 0.2.0 told itself, in a schedule or for its next invocation: both at the function's plain ARN, as today.
fn told_by_the_version_before(notice: &Value, earlier: &Value) -> Value {
    json!({"spillway-continuation": {"notice": notice, "earlier": earlier}})
}

#[tokio::test]
async fn a_schedule_that_the_version_before_planted_weeks_ago_drains() {
    let stage = Stage::set("planted-before").await;
    stage.deploy("web", 2, PodShape::default()).await;
    let mut notice = Maintenance::of(&stage.node.instance_id, in_s(600)).notice("announced");
    let weeks_ago = Timestamp::from_second(in_s(0).as_second()).expect("a time") - SignedDuration::from_hours(14 * 24);
    notice["time"] = json!(weeks_ago);

    let outcome = stage.lambda.invoke(told_by_the_version_before(&notice, &json!([]))).await;

    assert_eq!(receipt(&outcome)["ending"], "drained", "{outcome:#?}");
    assert!(stage.is_cordoned().await);
}

#[tokio::test]
async fn a_drain_that_the_version_before_began_goes_on() {
    let stage = Stage::set_in_group("begun-before", Hook::terminate("spillway")).await;
    stage.deploy("web", 2, PodShape::default()).await;
    let notice = stage.terminate().await;
    let claim =
        json!({"event": notice["id"], "request": "r-1", "notice": "terminate lifecycle action", "cordoned": true});
    let claimed =
        json!({"metadata": {"annotations": {"spillway/claim": claim.to_string()}}, "spec": {"unschedulable": true}});
    stage.change_node(&claimed).await;
    let now = Timestamp::now();
    let first = json!({"request_id": "r-1", "from": now, "to": now, "node": stage.node.name, "pods": {"clean": 1, "remaining": 2}});

    let outcome = stage.lambda.invoke(told_by_the_version_before(&notice, &json!([first]))).await;

    let receipt = receipt(&outcome);
    assert_eq!((&receipt["ending"], &receipt["earlier"][0]["request_id"]), (&json!("drained"), &json!("r-1")));
    let instance = stage.world.aws_side().instance(&stage.node.instance_id).await.expect("it is known");
    assert_eq!(instance.actions[0].result.as_deref(), Some("CONTINUE"));
}
