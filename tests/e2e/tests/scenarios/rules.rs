//! What each rule of the template lets through, on the bus: its own notices in all their forms, and no neighbour.

use serde_json::{Value, json};
use spillway_e2e::{sample, world};

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
        ("DrainSpotInterruption", vec!["spot-interruption"]),
        (
            "DrainCapacityReservationInterruption",
            vec![
                "capacity-reservation-interruption",
                "interruptible-capacity-reservation-interruption",
                "capacity-block-interruption",
            ],
        ),
        ("DrainCapacityBlockExpiry", vec!["capacity-block-expiry"]),
        ("DrainRebalanceRecommendation", vec!["rebalance-recommendation"]),
        (
            "DrainScheduledMaintenance",
            vec![
                "health-scheduled-maintenance",
                "health-scheduled-maintenance-closed",
                "health-scheduled-maintenance-older-form",
                "health-scheduled-maintenance-page-1",
                "health-scheduled-maintenance-page-2",
                "health-scheduled-reboot",
            ],
        ),
        ("DrainStateChange", vec!["state-change-stopping", "state-change-shutting-down"]),
        ("DrainInstanceDown", vec!["state-change-stopped", "state-change-terminated"]),
        ("DrainInstanceRunning", vec!["state-change-running"]),
        (
            "DrainTerminateLifecycleAction",
            vec![
                "terminate-lifecycle-action",
                "terminate-from-warm-pool",
                "return-to-warm-pool",
                "replace-root-volume",
            ],
        ),
        ("DrainLaunchLifecycleAction", vec!["launch-lifecycle-action", "launch-into-warm-pool"]),
        ("DrainLaunchFromWarmPool", vec!["launch-from-warm-pool"]),
        ("DrainRootVolumeReplaced", vec!["root-volume-replaced"]),
        ("DrainContinueDrain", vec!["drain-continuation", "undo-check"]),
        ("DrainDeployed", vec!["stack-deployed"]),
    ] {
        for name in names {
            assert_eq!(rules(&sample(name)).await, [rule], "{name}");
            samples += 1;
        }
    }
    // A schedule and people invoke the function with it.
    assert!(rules(&sample("doctor")).await.is_empty());
    samples += 1;
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../events");
    assert_eq!(samples, std::fs::read_dir(folder).expect("the samples").count(), "each sample has its rule here");
    for action in ["terminate", "stop", "hibernate"] {
        let event = with("spot-interruption", "/detail/instance-action", action);
        assert_eq!(rules(&event).await, ["DrainSpotInterruption"]);
    }
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
        ("drain-continuation", "/source", "somebody"),
        ("drain-continuation", "/detail-type", "Spillway Receipt"),
        ("stack-deployed", "/detail/stack-id", "arn:aws:cloudformation:us-east-1:123456789012:stack/shop/1"),
        ("stack-deployed", "/detail/status-details/status", "UPDATE_IN_PROGRESS"),
    ] {
        let neighbour = with(name, place, word);
        assert!(rules(&neighbour).await.is_empty(), "{name} with {place} = {word}");
    }
}
