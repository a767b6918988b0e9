//! Scheduled maintenance: found without a notice, scheduled and moved; the node is given back after its reboot.
//!
//! Reason: whole way.

use jiff::{SignedDuration, Timestamp, Unit};
use serde_json::json;
use spillway_bed::{NodeOptions, nodes};
use spillway_e2e::maintenance::{Maintenance, in_s};
use spillway_e2e::{Stage, ended, sample, until};

/// Maintenance in EC2's status is scheduled once; the notice of AWS Health replaces the schedule; cancelled or moved maintenance is
/// not drained.
#[tokio::test]
async fn maintenance_without_a_notice_is_found_and_scheduled() {
    let stage = Stage::set("found").await;
    let id = stage.node.instance_id.as_str();
    let maintenance = Maintenance::of(id, in_s(14 * 86_400));
    let begins = maintenance.starts - SignedDuration::from_hours(1);
    let announce = async |description: &str, starts: Timestamp| {
        let event = json!({"InstanceEventId": "instance-event-1", "Code": "system-reboot", "Description": description,
            "NotBefore": starts.to_string()});
        stage.aws().announce(id, &[event]).await.expect("EC2 announces");
    };
    announce("It needs maintenance", maintenance.starts).await;

    let found = ended(&stage.lambda.invoke(&sample("maintenance-lookup")).await);
    let count = "scheduled maintenance events of nodes in EC2: 1; without a schedule:";
    assert_eq!(found, ("continued".to_owned(), format!("{count} 1, handed on now: {id}")));
    let announced = stage.lambda.invoke(stage.continuation().await).await;

    assert_eq!(ended(&announced).0, "continued", "{announced:#?}");
    let begun = stage.schedules().await.remove(0);
    assert!(begins <= begun.at && begun.at < maintenance.starts, "the drain begins within the lead: {begun:?}");
    let again = ended(&stage.lambda.invoke(&sample("maintenance-lookup")).await);
    assert_eq!(again, ("ignored".to_owned(), format!("{count} 0")), "the drain is scheduled");

    for (description, starts, reason) in [
        ("[Canceled] It needs maintenance", maintenance.starts, "EC2 no longer lists the maintenance"),
        (
            "It needs maintenance",
            maintenance.starts + SignedDuration::from_hours(24),
            "its drain is scheduled for that time",
        ),
    ] {
        announce(description, starts).await;
        let ignored = ended(&stage.lambda.invoke(&begun.input).await);
        assert!(ignored.0 == "ignored" && ignored.1.contains(reason), "{ignored:?}");
    }
    let moved = stage.lambda.invoke(stage.continuation().await).await;
    assert!(ended(&moved).1.contains("its drain is scheduled for"), "{moved:#?}");

    let received = maintenance.moved_to(maintenance.starts + SignedDuration::from_mins(30));
    stage.notify(&received.notice("health")).await;

    let left: Vec<String> = stage.schedules().await.into_iter().map(|schedule| schedule.name).collect();
    assert!(left.contains(&format!("{id}.{}", received.id)), "{left:?}");
    assert_eq!(left.len(), 2, "the schedule of the found hour is replaced, that of the next day stays: {left:?}");
}

#[tokio::test]
async fn rebooted_node_is_given_back_and_not_before() {
    let stage = Stage::set_with("rebooted", NodeOptions::default()).await;
    let stage = stage.with_settings(&[("SPILLWAY_MAINTENANCE_LEAD_S", "3600")]).await;
    let node = &stage.node.name;
    // The first check is at the start, and the next one ten minutes later.
    let starts = in_s(60);
    let notice = Maintenance::of(&stage.node.instance_id, starts).notice("reboot");
    assert_eq!(ended(&stage.notify(&notice).await).0, "drained");

    let first = stage.lambda.invoke(stage.fired().await).await;

    let (ending, reason) = ended(&first);
    assert_eq!(ending, "continued", "{reason}");
    let waits = format!("node {node} is not given back yet: it has not rebooted; the next check is at");
    assert!(reason.starts_with(&waits), "{reason}");
    assert!(stage.is_cordoned().await);
    let next = stage.schedules().await.remove(0);
    assert!((next.at - starts).total(Unit::Second).expect("seconds") >= 600.0, "ten minutes later: {next:?}");

    let boot_id = async || stage.node_now().await.status.and_then(|status| status.node_info).map(|info| info.boot_id);
    let before = boot_id().await;
    stage.aws().reboot(&stage.node.instance_id).await.expect("EC2 reboots");
    until("another boot id", async || boot_id().await != before).await;
    nodes::until_ready(&stage.client(), node).await.expect("the node boots");
    let second = stage.lambda.invoke(next.input).await;

    assert_eq!(ended(&second), ("done".to_owned(), format!("node {node} is given back to use: it has rebooted")));
    assert!(stage.is_untouched().await);
}
