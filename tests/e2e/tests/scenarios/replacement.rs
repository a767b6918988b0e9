//! Replacement first: the group launches another instance at the notice, keeps its capacity, and refuses where it should.
//!
//! Reason: whole way.

use std::time::Duration;

use futures_util::future::join_all;
use jiff::Timestamp;
use serde_json::{Value, json};
use spillway_bed::aws::{Hook, Instance};
use spillway_bed::lambda::Outcome;
use spillway_bed::pods::PodShape;
use spillway_bed::{NodeOptions, TestNode};
use spillway_e2e::maintenance::{Maintenance, in_s};
use spillway_e2e::{Stage, receipt, spot_notice, world};
use tokio::time::sleep;

const TAG: (&str, &str) = ("spillway:replace", "true");
const TERMINATE: &str = "autoscaling:TerminateInstanceInAutoScalingGroup";

fn options(group: &str, spot: bool) -> NodeOptions {
    let tags = [(TAG.0.to_owned(), TAG.1.to_owned())].into();
    NodeOptions { group: Some(group.to_owned()), spot, tags, ..NodeOptions::default() }
}

async fn stage(name: &str, spot: bool) -> Stage {
    let hook = Hook::terminate("spillway");
    world().await.aws_side().put_tagged_group(name, &[hook], &[TAG]).await.expect("the group is new");
    Stage::set_with(name, options(name, spot)).await.with_settings(&[("SPILLWAY_REPLACE", "spot,maintenance")]).await
}

fn replacement(outcome: &Outcome) -> String {
    receipt(outcome)["replacement"].as_str().unwrap_or_default().to_owned()
}

async fn requests(stage: &Stage) -> usize {
    stage.aws_calls().await.into_iter().filter(|call| call == TERMINATE).count()
}

fn assert_replaced(drained: &Outcome, completed: &Outcome, desired: &Value) {
    let requested = replacement(drained).starts_with("requested at ");
    assert!(receipt(drained)["ending"] == "drained" && requested, "{drained:#?}");
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
    assert_eq!(count(TERMINATE), 1, "{calls:?}");
    assert_eq!(count("autoscaling:CompleteLifecycleAction"), 1, "{calls:?}");
}

#[tokio::test]
async fn duplicates_of_a_spot_notice_request_one_replacement() {
    let stage = stage("replaced-once", true).await;
    stage.deploy("web", 3, PodShape::default().exits_after(Duration::from_secs(5))).await;
    let event = stage.interrupt().await;

    let all = join_all((0..3).map(|_| stage.lambda.invoke(&event))).await;

    assert_eq!(requests(&stage).await, 1);
    assert_eq!(all.iter().filter(|outcome| replacement(outcome).starts_with("requested at ")).count(), 1, "{all:#?}");
}

#[tokio::test]
async fn each_refusal_has_its_reason_and_no_request() {
    let stage = stage("refused", true).await;
    let aws = stage.world.aws_side();
    let ours = || vec![Hook::terminate("spillway")];
    let marked = Some(("marked-for-termination", 0.0));
    let suspended = ["Launch".to_owned()];
    let none: &[String] = &[];
    // Group, hooks, tags, suspended processes, warm pool, rebalancing, replacements, spot request, reason.
    let cases = [
        ("no-hook", vec![], true, none, (false, false, 0), marked, "no terminate hook of ours"),
        ("no-tag", ours(), false, none, (false, false, 0), marked, "lacks the tag spillway:replace=true"),
        ("suspended", ours(), true, &suspended[..], (false, false, 0), marked, "has suspended Launch"),
        ("warm-pool", ours(), true, none, (true, false, 0), marked, "has a warm pool"),
        ("rebalancing", ours(), true, none, (false, true, 0), marked, "rebalances its capacity itself"),
        ("limit", ours(), true, none, (false, false, 5), marked, "replaced 5 instances in the last hour"),
        ("forged", ours(), true, none, (false, false, 0), Some(("fulfilled", 3600.0)), "has the status fulfilled"),
        ("stale", ours(), true, none, (false, false, 0), Some(("marked-for-termination", 600.0)), "does not confirm"),
        ("on-demand", ours(), true, none, (false, false, 0), None, "names no spot request"),
    ];
    let drained = cases.into_iter().map(
        |(name, hooks, is_tagged, suspended, (warm_pool, rebalances, replaced), request, why)| {
            let (stage, aws, group) = (&stage, &aws, format!("refused-{name}"));
            async move {
                let tags = if is_tagged { &[TAG][..] } else { &[] };
                aws.put_tagged_group(&group, &hooks, tags).await.expect("the group is new");
                aws.put_group_state(&group, suspended, warm_pool, rebalances, replaced)
                    .await
                    .expect("the group exists");
                let node: TestNode =
                    stage.world.add_node(options(&group, request.is_some())).await.expect("the node joins");
                if let Some((status, age_s)) = request {
                    aws.mark_spot_request(&node.instance_id, status, age_s).await.expect("a spot instance");
                }
                let outcome = stage.lambda.invoke(spot_notice(&node.instance_id, Timestamp::now())).await;
                assert_eq!(receipt(&outcome)["ending"], "drained", "{outcome:#?}");
                let refusal = replacement(&outcome);
                assert!(refusal.starts_with("not requested: ") && refusal.contains(why), "{name}: {refusal}");
            }
        },
    );
    join_all(drained).await;
    assert_eq!(requests(&stage).await, 0);
}

#[tokio::test]
async fn group_without_the_tag_costs_no_call() {
    let world = world().await;
    let mut calls = Vec::new();
    for replace in ["off", "spot,maintenance"] {
        let name = format!("untagged-{}", &replace[..3]);
        world.aws_side().put_group(&name, &[Hook::terminate("spillway")]).await.expect("the group is new");
        let node = NodeOptions { group: Some(name.clone()), spot: true, ..NodeOptions::default() };
        let stage = Stage::set_with(&name, node).await.with_settings(&[("SPILLWAY_REPLACE", replace)]).await;
        stage.deploy("web", 2, PodShape::default()).await;
        let event = stage.interrupt().await;
        let outcome = stage.lambda.invoke(event).await;
        assert_eq!(receipt(&outcome).get("replacement"), None, "{outcome:#?}");
        calls.push(stage.aws_calls().await);
    }
    assert_eq!(calls[0], calls[1]);
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
