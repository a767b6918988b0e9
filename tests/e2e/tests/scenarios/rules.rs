//! What each rule of the template lets through, on the bus: its own notices in all their forms, and no neighbour.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use spillway_bed::lambda::LambdaOptions;
use spillway_bed::pods::PodShape;
use spillway_e2e::{Stage, ended, sample, spot_notice, world};

/// The rules that let an event through.
async fn rules(event: &Value) -> Vec<String> {
    let delivered = world().await.aws_side().send_notice(event).await.expect("the bus takes it");
    delivered.into_iter().map(|one| one.rule).collect()
}

/// A sample with another word at a place.
fn with(name: &str, place: &str, word: &str) -> Value {
    let mut event = sample(name);
    *event.pointer_mut(place).expect("it has the place") = json!(word);
    event
}

#[tokio::test]
async fn every_sample_passes_the_rule_of_its_kind_and_no_other() {
    let mut samples = 0;
    for (rule, names) in [
        (
            "DrainInterruption",
            vec![
                "spot-interruption",
                "capacity-reservation-interruption",
                "interruptible-capacity-reservation-interruption",
                "capacity-block-interruption",
                "state-change-stopping",
                "state-change-shutting-down",
                "state-change-stopped",
                "state-change-terminated",
                "state-change-running",
            ],
        ),
        ("DrainCapacityBlockAndRebalance", vec!["capacity-block-expiry", "rebalance-recommendation"]),
        (
            "DrainScheduledMaintenance",
            vec![
                "health-scheduled-maintenance",
                "health-scheduled-maintenance-closed",
                "health-scheduled-maintenance-older-form",
                "health-scheduled-maintenance-page-1",
                "health-scheduled-maintenance-page-2",
                "health-scheduled-reboot",
                "health-expedited-retirement",
                "health-flexible-reboot",
                "health-dedicated-host",
            ],
        ),
        (
            "DrainLifecycleAction",
            vec![
                "terminate-lifecycle-action",
                "terminate-from-warm-pool",
                "return-to-warm-pool",
                "replace-root-volume",
                "launch-lifecycle-action",
                "launch-into-warm-pool",
                "launch-from-warm-pool",
                "root-volume-replaced",
            ],
        ),
        ("DrainDeployed", vec!["stack-deployed"]),
    ] {
        for name in names {
            assert_eq!(rules(&sample(name)).await, [rule], "{name}");
            samples += 1;
        }
    }
    // Schedules and people invoke the function with these, and so does the function itself: they are no events.
    assert!(rules(&sample("doctor")).await.is_empty());
    samples += ["doctor", "drain-continuation", "maintenance-lookup", "undo-check"].len();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../events");
    assert_eq!(samples, std::fs::read_dir(folder).expect("the samples").count(), "each sample has its rule here");
    for action in ["terminate", "stop", "hibernate"] {
        let event = with("spot-interruption", "/detail/instance-action", action);
        assert_eq!(rules(&event).await, ["DrainInterruption"]);
    }
}

#[tokio::test]
async fn what_another_account_sends_or_somebody_replays_passes_no_rule() {
    for name in ["spot-interruption", "health-scheduled-maintenance", "terminate-lifecycle-action", "stack-deployed"] {
        assert_eq!(rules(&sample(name)).await.len(), 1, "{name}");
        assert!(rules(&with(name, "/account", "999999999999")).await.is_empty(), "{name}");
        let mut replayed = sample(name);
        replayed["replay-name"] = json!("again");
        assert!(rules(&replayed).await.is_empty(), "{name}");
    }
}

/// Whoever may put events on the bus can write all of this.
#[tokio::test]
async fn what_looks_like_the_functions_own_passes_no_rule_and_is_refused_if_it_reaches_the_function_all_the_same() {
    let stage = Stage::set("forged").await;
    for (what, key) in [("drain-continuation", "spillway-continuation"), ("undo-check", "spillway-undo-check")] {
        for detail_type in ["Spillway Drain Continuation", "Spillway Undo Check"] {
            let mut own = sample(what)[key].take();
            // A notice for which the node would be drained.
            own["notice"] = spot_notice(&stage.node.instance_id, Timestamp::now());
            own["stack"] = json!("spillway");
            let mut forged = sample("spot-interruption");
            (forged["source"], forged["detail-type"]) = (json!("spillway"), json!(detail_type));
            forged["detail"] = own.clone();
            assert!(rules(&forged).await.is_empty(), "{forged:#}");
            forged[key] = own;

            let outcome = stage.lambda.invoke(&forged).await;

            let (ending, reason) = ended(&outcome);
            assert_eq!(ending, "ignored", "{outcome:#?}");
            let why = format!("\"{detail_type}\" came over an event bus, where anybody may have put it");
            assert!(reason.starts_with(&why), "{reason}");
        }
    }
    assert!(stage.is_untouched().await);
    assert!(stage.aws_calls().await.is_empty(), "nothing was asked of AWS");
}

/// The right that the function has for going on is for itself alone.
#[tokio::test]
async fn a_function_may_invoke_no_other() {
    let stage = Stage::set_in_group("another", spillway_bed::aws::Hook::terminate("spillway")).await;
    let env = [("AWS_LAMBDA_FUNCTION_NAME".to_owned(), "somebody-elses".to_owned())].into();
    let options = LambdaOptions { env, timeout: Duration::from_secs(10), ..LambdaOptions::default() };
    let stage = stage.with_function(options).await;
    stage.deploy("slow", 1, PodShape::default().exits_after(Duration::from_mins(10)).grace(600)).await;

    let outcome = stage.lambda.invoke(stage.terminate().await).await;

    let error = outcome.result.as_ref().expect_err("it cannot be handed on");
    assert_eq!(error.error_type, "AwsDenied", "{outcome:#?}");
    assert!(error.message.contains("lambda:InvokeFunction on resource"), "{error}");
}

#[tokio::test]
async fn the_neighbours_of_a_notice_pass_no_rule() {
    let test = "autoscaling:TEST_NOTIFICATION";
    for (name, place, word) in [
        ("spot-interruption", "/source", "my.tool"),
        ("spot-interruption", "/detail-type", "EC2 Spot Instance Request Fulfillment"),
        ("capacity-block-expiry", "/detail-type", "Capacity Block Reservation Delivered"),
        ("health-scheduled-maintenance", "/detail/service", "RDS"),
        ("health-scheduled-maintenance", "/detail/eventTypeCategory", "issue"),
        ("health-scheduled-maintenance", "/detail/eventTypeCategory", "accountNotification"),
        ("health-scheduled-maintenance", "/detail-type", "AWS Health Abuse Event"),
        ("state-change-running", "/detail/state", "pending"),
        ("terminate-lifecycle-action", "/detail-type", "EC2 Instance Terminate Successful"),
        ("terminate-lifecycle-action", "/detail/LifecycleTransition", test),
        ("launch-lifecycle-action", "/detail/LifecycleTransition", test),
        ("launch-from-warm-pool", "/detail/LifecycleTransition", test),
        ("root-volume-replaced", "/detail/LifecycleTransition", test),
        ("stack-deployed", "/detail/stack-id", "arn:aws:cloudformation:us-east-1:123456789012:stack/shop/1"),
        ("stack-deployed", "/detail/status-details/status", "UPDATE_IN_PROGRESS"),
    ] {
        let neighbour = with(name, place, word);
        assert!(rules(&neighbour).await.is_empty(), "{name} with {place} = {word}");
    }
}
