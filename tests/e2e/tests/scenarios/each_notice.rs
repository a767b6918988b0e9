//! One drain for each notice that asks for one, from AWS' own words through the rule of the template to an empty node;
//! and notices of several instances, each of which ends on its own.
//!
//! Reason: whole way.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use spillway_bed::NodeOptions;
use spillway_bed::aws::{CapacityReservation, Ec2State, Hook};
use spillway_bed::lambda::{Delivery, Outcome};
use spillway_bed::pods::PodShape;
use spillway_e2e::{Stage, fates, receipt, sample, the_one, world};

const PODS: u32 = 2;

fn from_now(seconds: i64) -> Value {
    let at = Timestamp::now() + SignedDuration::from_secs(seconds);
    json!(at.round(jiff::Unit::Second).unwrap_or(at).to_string())
}

/// A sample about another instance, sent now.
pub(crate) fn about(name: &str, instance_id: &str) -> Value {
    let mut event = sample(name);
    (event["id"], event["time"]) = (json!(format!("{name}-{instance_id}")), from_now(0));
    event["detail"]["instance-id"] = json!(instance_id);
    event
}

/// A node with pods that shut down soon, and after their evictions have been answered.
async fn with_pods(stage: Stage) -> Stage {
    stage.deploy("web", PODS, PodShape::default().exits_after(Duration::from_secs(1))).await;
    stage
}

/// The event as its rule hands it to the function.
async fn through_the_bus(event: &Value) -> Value {
    the_one(world().await.aws_side().send_notice(event).await.expect("the bus takes it"))
}

/// The node is empty, and nothing had to be hurried; the receipt names the kind of notice.
fn assert_drained(outcome: &Outcome, kind: &str) {
    let answer = outcome.result.as_ref().unwrap_or_else(|error| panic!("{error}: {outcome:#?}"));
    assert_eq!((&answer["ending"], &answer["notice"]["kind"]), (&json!("drained"), &json!(kind)), "{outcome:#?}");
    assert_eq!(fates(answer)["clean"], PODS as usize, "{answer:#}");
}

/// The invocations that a notice of several instances is handed on to.
async fn each_of_several(stage: &Stage, notice: Value) -> Vec<Value> {
    let continued = stage.lambda.invoke(notice).await;
    let answer = continued.result.as_ref().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(answer["ending"], "continued", "{continued:#?}");
    let delivered = stage.world.aws_side().take_deliveries(stage.lambda.access_key_id()).await.expect("the bus");
    delivered.into_iter().map(|one| one.event).collect()
}

#[tokio::test]
async fn a_rebalance_recommendation_drains_the_node_if_the_settings_say_so() {
    let stage = Stage::set("rebalance")
        .await
        .with_settings(&[("SPILLWAY_DRAIN_ON", "spot,capacity,maintenance,state-change,terminate,rebalance")])
        .await;
    let stage = with_pods(stage).await;
    let event = through_the_bus(&about("rebalance-recommendation", &stage.node.instance_id)).await;
    assert_drained(&stage.deliver(event).await, "rebalance recommendation");
}

#[tokio::test]
async fn an_instance_whose_capacity_is_taken_back_is_drained_whichever_way_aws_words_it() {
    for (name, goes_in) in [
        ("capacity-reservation-interruption", Some(120)),
        ("interruptible-capacity-reservation-interruption", None),
        ("capacity-block-interruption", Some(0)),
    ] {
        let stage = with_pods(Stage::set(name).await).await;
        let mut event = about(name, &stage.node.instance_id);
        if let Some(seconds) = goes_in {
            event["detail"]["instance-termination-time"] = from_now(seconds);
        }
        let outcome = stage.deliver(through_the_bus(&event).await).await;
        let answer = outcome.result.as_ref().unwrap_or_else(|error| panic!("{error}: {outcome:#?}"));
        let kind = "capacity reservation interruption";
        assert_eq!((&answer["ending"], &answer["notice"]["kind"]), (&json!("drained"), &json!(kind)), "{outcome:#?}");
    }
}

#[tokio::test]
async fn every_instance_of_a_capacity_block_that_ends_is_drained_by_itself() {
    let reservation = "cr-0123456789abcdef0";
    let lifecycle = Some("capacity-block".to_owned());
    let options = NodeOptions {
        capacity_reservation: Some(CapacityReservation { id: reservation.to_owned(), lifecycle }),
        ..NodeOptions::default()
    };
    let stage = with_pods(Stage::set_with("capacity-block", options.clone()).await).await;
    let mut nodes = vec![stage.node.name.clone()];
    for _ in 0..4 {
        nodes.push(stage.world.add_node(options.clone()).await.expect("the node joins").name);
    }
    let _another_ones = stage.world.add_node(NodeOptions::default()).await.expect("the node joins");
    // EC2 answers in pages.
    stage.world.aws_side().limit_pages(stage.lambda.access_key_id(), 2).await.expect("pages");
    let mut event = sample("capacity-block-expiry");
    event["time"] = from_now(0);
    event["detail"]["capacity-reservation-id"] = json!(reservation);
    event["detail"]["end-date"] = from_now(40 * 60);

    let each = each_of_several(&stage, through_the_bus(&event).await).await;

    let mut drained = Vec::new();
    for event in each {
        let outcome = stage.deliver(event).await;
        let answer = outcome.result.as_ref().expect("it drains");
        assert_eq!(answer["notice"]["kind"], "capacity block expiry");
        assert_eq!(answer["ending"], "drained", "{outcome:#?}");
        drained.push(answer["node"].as_str().unwrap_or_default().to_owned());
    }
    drained.sort();
    nodes.sort();
    assert_eq!(drained, nodes);
}

/// NTH drains the first of them only (facts of its code: every affected instance gets the same event id).
#[tokio::test]
async fn every_instance_of_a_health_event_ends_on_its_own_and_one_that_fails_stops_no_other() {
    let stage = with_pods(Stage::set("health-of-three").await).await;
    let (unknown, resolved, malformed) = ("i-0000000000000dead", "i-0000000000000beef", "i-malformed");
    let mut event = sample("health-scheduled-maintenance");
    event["time"] = from_now(0);
    event["detail"]["startTime"] = from_now(120);
    event["detail"]["affectedEntities"] = json!([
        {"entityValue": malformed, "status": "PENDING"},
        {"entityValue": unknown, "status": "PENDING"},
        {"entityValue": stage.node.instance_id, "status": "PENDING"},
        {"entityValue": "vol-1234567890abcdef0", "status": "PENDING"},
        {"entityValue": resolved, "status": "RESOLVED"},
    ]);

    let each = each_of_several(&stage, through_the_bus(&event).await).await;

    assert_eq!(each.len(), 4, "{each:#?}");
    for event in each {
        let Delivery { last, .. } = stage.lambda.invoke_async(&event).await.expect("the queue works");
        match event["spillway-continuation"]["instance"].as_str().expect("each is of one") {
            instance if instance == unknown || instance == resolved => {
                let answer = last.result.as_ref().expect("it is no failure");
                let kind = if instance == unknown { "scheduled maintenance" } else { "maintenance over" };
                assert_eq!(answer["notice"]["kind"], kind);
                assert_eq!(answer["reason"], format!("EC2 knows no instance {instance}"));
            }
            instance if instance == malformed => {
                let error = last.result.as_ref().expect_err("it fails");
                let why = "cannot read the notice: at instance: \"i-malformed\" is no instance id";
                assert_eq!((error.error_type.as_str(), error.message.as_str()), ("UnreadableNotice", why));
            }
            _ => assert_drained(&last, "scheduled maintenance"),
        }
    }
    let kept = stage.world.aws_side().failures().await.expect("the failure queue");
    assert!(kept.iter().any(|text| text.contains(malformed)), "{kept:?}");
}

#[tokio::test]
async fn an_instance_that_somebody_stops_or_ends_is_drained_as_fast_as_can_be() {
    for (name, state, kind) in [
        ("stopping", Ec2State::Stopping, "instance stopping"),
        ("shutting-down", Ec2State::ShuttingDown, "instance shutting down"),
    ] {
        let stage = with_pods(Stage::set(name).await).await;
        let delivered = stage.world.aws_side().change_state(&stage.node.instance_id, &[state]).await;
        let outcome = stage.deliver(the_one(delivered.expect("EC2 says so"))).await;
        let told = receipt(&outcome);
        assert_eq!(told["notice"]["kind"], kind);
        // Whether the kubelet lives to say that its pods have stopped is not ours to promise.
        assert!(told["pods"].as_array().is_some_and(|pods| pods.len() == PODS as usize), "{told:#}");
        assert!(told["pods"].as_array().into_iter().flatten().all(|pod| pod["answers"]["evicted"] == 1), "{told:#}");
    }
}

#[tokio::test]
async fn a_group_that_keeps_the_instance_waits_for_its_drain_too() {
    for (name, kind) in [("warm-pool", "return to warm pool"), ("root-volume", "root volume replacement")] {
        let stage = with_pods(Stage::set_in_group(name, Hook::terminate("spillway")).await).await;
        let (aws, instance) = (stage.world.aws_side(), &stage.node.instance_id);
        let delivered = match name {
            "warm-pool" => aws.return_to_warm_pool(instance).await,
            _ => aws.replace_root_volume(instance).await,
        };
        let outcome = stage.deliver(the_one(delivered.expect("Auto Scaling says so"))).await;
        assert_drained(&outcome, kind);
        let actions = aws.instance(instance).await.expect("it is known").actions;
        assert_eq!(actions[0].result.as_deref(), Some("CONTINUE"), "{actions:?}");
    }
}
