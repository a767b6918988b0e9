//! Replacement first: the group launches another instance at the notice and keeps its capacity.
//!
//! Reason: whole way.

use std::time::Duration;

use serde_json::{Value, json};
use spillway_bed::NodeOptions;
use spillway_bed::aws::{Hook, Instance};
use spillway_bed::lambda::Outcome;
use spillway_bed::pods::PodShape;
use spillway_e2e::maintenance::{Maintenance, in_s};
use spillway_e2e::{Stage, receipt, world};
use tokio::time::sleep;

const TAG: (&str, &str) = ("spillway:replace", "true");

fn options(group: &str, spot: bool) -> NodeOptions {
    let tags = [(TAG.0.to_owned(), TAG.1.to_owned())].into();
    NodeOptions { group: Some(group.to_owned()), spot, tags, ..NodeOptions::default() }
}

async fn stage(name: &str, spot: bool) -> Stage {
    let hook = Hook::terminate("spillway");
    world().await.aws_side().put_tagged_group(name, &[hook], &[TAG]).await.expect("the group is new");
    Stage::set_with(name, options(name, spot)).await.with_settings(&[("SPILLWAY_REPLACE", "spot,maintenance")]).await
}

fn assert_replaced(drained: &Outcome, completed: &Outcome, desired: &Value) {
    let drained = receipt(drained);
    let requested = drained["replacement"].as_str().is_some_and(|request| request.starts_with("requested at "));
    assert!(drained["ending"] == "drained" && requested, "{drained:#}");
    assert_eq!(*desired, 3);
    let hook = &receipt(completed)["hook"];
    assert_eq!((&hook["state"], &hook["result"]), (&json!("completed"), &json!("CONTINUE")));
}

/// The desired capacity, and the instance that the group launches.
async fn launched(stage: &Stage) -> (Value, Instance) {
    loop {
        let state = stage.world.aws_side().launched(&stage.name).await.expect("the group exists");
        if let Some(instance) = state["launched"].get(0) {
            let instance = serde_json::from_value(instance.clone()).expect("an instance");
            return (state["desired"].clone(), instance);
        }
        sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn spot_notice_in_a_tagged_group_starts_its_replacement_first() {
    let stage = stage("replaced-first", true).await;
    stage.deploy("web", 3, PodShape::default().exits_after(Duration::from_secs(5))).await;
    let event = stage.interrupt().await;

    let hook = async {
        let delivered = stage.world.aws_side().wait_for_delivery(&stage.node.instance_id).await;
        stage.lambda.invoke(delivered.expect("the hook's notice").event).await
    };
    let joined = async {
        let (desired, instance) = launched(&stage).await;
        stage.world.join(&instance, &options(&stage.name, true)).await.expect("the new node is Ready");
        desired
    };
    let (drained, completed, desired) = tokio::join!(stage.lambda.invoke(event), hook, joined);

    assert_replaced(&drained, &completed, &desired);
    let calls = stage.aws_calls().await;
    let count = |wanted: &str| calls.iter().filter(|call| *call == wanted).count();
    assert_eq!(count("autoscaling:TerminateInstanceInAutoScalingGroup"), 1, "{calls:?}");
    assert_eq!(count("autoscaling:CompleteLifecycleAction"), 1, "{calls:?}");
}

#[tokio::test]
async fn retirement_is_replaced_after_its_drain() {
    let settings = [("SPILLWAY_REPLACE", "spot,maintenance"), ("SPILLWAY_MAINTENANCE_LEAD_S", "3600")];
    let stage = stage("retired", false).await.with_settings(&settings).await;
    stage.deploy_quick("quick", 2).await;
    let maintenance = Maintenance::of(&stage.node.instance_id, in_s(600));
    let scheduled = json!({"InstanceEventId": "instance-event-0d59937288b749b32", "Code": "instance-retirement",
        "Description": "The instance is running on degraded hardware", "NotBefore": maintenance.starts.to_string()});
    stage.world.aws_side().announce(&stage.node.instance_id, &[scheduled]).await.expect("EC2 announces");
    let mut notice = maintenance.notice("retirement");
    notice["detail"]["eventTypeCode"] = json!("AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED");
    notice["detail"]["eventArn"] =
        json!("arn:aws:health:us-east-1::event/EC2/AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED/R_1");

    let drained = stage.notify(&notice).await;

    let (desired, _) = launched(&stage).await;
    let delivered = stage.world.aws_side().wait_for_delivery(&stage.node.instance_id).await;
    let completed = stage.lambda.invoke(delivered.expect("the hook's notice").event).await;
    assert_replaced(&drained, &completed, &desired);
}
