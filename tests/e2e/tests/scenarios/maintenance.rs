//! Scheduled maintenance: the notice waits for its lead in a schedule, moves with its updates, and is found without a notice.
//!
//! Reason: whole way.

use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use spillway_bed::NodeOptions;
use spillway_e2e::maintenance::{Maintenance, in_s};
use spillway_e2e::{Stage, ended, receipt, sample};

/// Time for a drain of quick pods, and two seconds of margin.
const LEAD_S: i64 = 60;

#[tokio::test]
async fn maintenance_is_drained_its_lead_before_its_start() {
    let stage = Stage::set_with("waits", NodeOptions::default()).await;
    let stage = stage.with_settings(&[("SPILLWAY_MAINTENANCE_LEAD_S", &LEAD_S.to_string())]).await;
    stage.deploy_quick("quick", 2).await;
    let id = &stage.node.instance_id;
    let maintenance = Maintenance::of(id, in_s(LEAD_S + 600));
    let begins = maintenance.starts - SignedDuration::from_secs(LEAD_S);

    let announced = stage.notify(&maintenance.notice("announced")).await;

    let reason = format!("maintenance of {id} begins at {}; its drain is scheduled for {begins}", maintenance.starts);
    assert_eq!(ended(&announced), ("continued".to_owned(), reason));
    assert!(!stage.is_cordoned().await);
    let failures = stage.schedules().await[0].dead_letters.clone();
    assert!(failures.as_ref().is_some_and(|queue| queue.contains(":spillway-Failures-")), "{failures:?}");

    // A wait of less than two minutes is slept.
    let sooner = maintenance.moved_to(in_s(LEAD_S + 25));
    let drained = stage.notify(&sooner.notice("sooner")).await;

    assert_eq!(ended(&drained).0, "drained", "{drained:#?}");
    let notice = &receipt(&drained)["notice"];
    assert_eq!((&notice["event_id"], &notice["deadline"]), (&json!("sooner"), &json!(sooner.starts)));
    assert!(stage.is_cordoned().await);
}

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
