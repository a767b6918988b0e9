//! A drain for each kind of notice, from AWS' own words through the template's rule to an empty node; and notices of several
//! instances, each of which ends on its own.
//!
//! Reason: whole way.

use jiff::Timestamp;
use serde_json::{Value, json};
use spillway_bed::NodeOptions;
use spillway_bed::aws::{CapacityReservation, Ec2State, Hook};
use spillway_bed::lambda::Outcome;
use spillway_e2e::maintenance::in_s;
use spillway_e2e::{Stage, answer, assert_drained, ended, in_seconds, notice, receipt, sample, the_one};

const PODS: u32 = 2;

async fn with_pods(stage: Stage) -> Stage {
    stage.deploy_quick("web", PODS).await;
    stage
}

fn assert_drained_by(outcome: &Outcome, kind: &str) {
    assert_drained(outcome, PODS as usize);
    assert_eq!(answer(outcome)["notice"]["kind"], kind, "{outcome:#?}");
}

/// Invocations to which a notice of several instances is handed on.
async fn each_of_several(stage: &Stage, notice: &Value) -> Vec<Value> {
    let continued = stage.notify(notice).await;
    assert_eq!(answer(&continued)["ending"], "continued", "{continued:#?}");
    let delivered = stage.aws().take_deliveries(stage.lambda.access_key_id()).await.expect("the bus answers");
    delivered.into_iter().map(|one| one.event).collect()
}

#[tokio::test]
async fn rebalance_recommendation_drains_if_the_setting_names_it() {
    let drain_on = "spot,capacity,maintenance,state-change,terminate,rebalance";
    let stage = with_pods(Stage::set("rebalance").await.with_settings(&[("SPILLWAY_DRAIN_ON", drain_on)]).await).await;
    let event = stage.delivered(&notice("rebalance-recommendation", &stage.node.instance_id)).await;
    assert_drained_by(&stage.lambda.invoke(event).await, "rebalance recommendation");
}

#[tokio::test]
async fn each_event_of_interrupted_capacity_drains() {
    for (name, goes_in) in [
        ("capacity-reservation-interruption", Some(120)),
        ("interruptible-capacity-reservation-interruption", None),
        ("capacity-block-interruption", Some(0)),
    ] {
        let stage = with_pods(Stage::set(name).await).await;
        let mut event = notice(name, &stage.node.instance_id);
        if let Some(seconds) = goes_in {
            event["detail"]["instance-termination-time"] = json!(in_seconds(in_s(seconds)));
        }
        let outcome = stage.lambda.invoke(stage.delivered(&event).await).await;
        let answer = answer(&outcome);
        let kind = "capacity reservation interruption";
        assert_eq!((&answer["ending"], &answer["notice"]["kind"]), (&json!("drained"), &json!(kind)), "{outcome:#?}");
    }
}

#[tokio::test]
async fn each_instance_of_an_expiring_capacity_block_is_drained() {
    let id = "cr-0123456789abcdef0".to_owned();
    let reservation = CapacityReservation { id: id.clone(), lifecycle: Some("capacity-block".to_owned()) };
    let options = NodeOptions { capacity_reservation: Some(reservation), ..NodeOptions::default() };
    let stage = with_pods(Stage::set_with("capacity-block", options.clone()).await).await;
    let mut nodes = vec![stage.node.name.clone()];
    for _ in 0..4 {
        nodes.push(stage.world.add_node(options.clone()).await.expect("the node joins").name);
    }
    stage.world.add_node(NodeOptions::default()).await.expect("a node of no reservation joins");
    // EC2 answers in pages.
    stage.aws().limit_pages(stage.lambda.access_key_id(), 2).await.expect("small pages");
    let mut event = sample("capacity-block-expiry");
    event["time"] = json!(in_seconds(Timestamp::now()));
    event["detail"]["capacity-reservation-id"] = json!(id);
    event["detail"]["end-date"] = json!(in_seconds(in_s(40 * 60)));

    let mut drained = Vec::new();
    for event in each_of_several(&stage, &event).await {
        let outcome = stage.lambda.invoke(event).await;
        let answer = answer(&outcome);
        assert_eq!(answer["notice"]["kind"], "capacity block expiry");
        assert_eq!(answer["ending"], "drained", "{outcome:#?}");
        drained.push(answer["node"].as_str().unwrap_or_default().to_owned());
    }
    drained.sort();
    nodes.sort();
    assert_eq!(drained, nodes);
}

/// NTH drains only the first instance: all get the same event id.
#[tokio::test]
async fn each_instance_of_a_health_event_ends_on_its_own() {
    let stage = with_pods(Stage::set("health-of-three").await).await;
    let (unknown, resolved, malformed) = ("i-0000000000000dead", "i-0000000000000beef", "i-malformed");
    let mut event = sample("health-scheduled-maintenance");
    event["time"] = json!(in_seconds(Timestamp::now()));
    event["detail"]["startTime"] = json!(in_seconds(in_s(120)));
    event["detail"]["affectedEntities"] = json!([
        {"entityValue": malformed, "status": "PENDING"},
        {"entityValue": unknown, "status": "PENDING"},
        {"entityValue": stage.node.instance_id, "status": "PENDING"},
        {"entityValue": "vol-1234567890abcdef0", "status": "PENDING"},
        {"entityValue": resolved, "status": "RESOLVED"},
    ]);

    let each = each_of_several(&stage, &event).await;

    assert_eq!(each.len(), 4, "{each:#?}");
    for event in each {
        let last = stage.lambda.invoke_async(&event).await.expect("the queue works").last;
        match event["spillway-continuation"]["instance"].as_str().expect("an instance") {
            instance if instance == unknown || instance == resolved => {
                let kind = if instance == unknown { "scheduled maintenance" } else { "maintenance over" };
                assert_eq!(answer(&last)["notice"]["kind"], kind);
                assert_eq!(ended(&last).1, format!("EC2 knows no instance {instance}"));
            }
            instance if instance == malformed => {
                let error = last.result.as_ref().expect_err("a failure");
                let message = "cannot read the notice: at instance: \"i-malformed\" is no instance id";
                assert_eq!((error.error_type.as_str(), error.message.as_str()), ("UnreadableNotice", message));
            }
            _ => assert_drained_by(&last, "scheduled maintenance"),
        }
    }
    let kept = stage.aws().failures().await.expect("the failure queue");
    assert!(kept.iter().any(|text| text.contains(malformed)), "{kept:?}");
}

#[tokio::test]
async fn stopped_or_terminated_instance_is_drained_at_once() {
    for (name, state, kind) in [
        ("stopping", Ec2State::Stopping, "instance stopping"),
        ("shutting-down", Ec2State::ShuttingDown, "instance shutting down"),
    ] {
        let stage = with_pods(Stage::set(name).await).await;
        let delivered = stage.aws().change_state(&stage.node.instance_id, &[state]).await;
        let outcome = stage.lambda.invoke(the_one(delivered.expect("EC2 changes the state"))).await;
        let receipt = receipt(&outcome);
        assert_eq!(receipt["notice"]["kind"], kind);
        // The kubelet may not live to report the end of its pods.
        let pods = receipt["pods"].as_array().expect("pods");
        assert_eq!(pods.len(), PODS as usize, "{receipt:#}");
        assert!(pods.iter().all(|pod| pod["answers"]["evicted"] == 1), "{receipt:#}");
    }
}

#[tokio::test]
async fn group_that_keeps_the_instance_waits_for_its_drain() {
    for (name, kind) in [("warm-pool", "return to warm pool"), ("root-volume", "root volume replacement")] {
        let stage = with_pods(Stage::set_in_group(name, Hook::terminate("spillway")).await).await;
        let (aws, instance) = (stage.aws(), &stage.node.instance_id);
        let delivered = match name {
            "warm-pool" => aws.return_to_warm_pool(instance).await,
            _ => aws.replace_root_volume(instance).await,
        };
        let outcome = stage.lambda.invoke(the_one(delivered.expect("Auto Scaling gives notice"))).await;
        assert_drained_by(&outcome, kind);
        let action = stage.action().await;
        assert_eq!(action.result.as_deref(), Some("CONTINUE"), "{action:?}");
    }
}
