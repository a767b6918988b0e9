//! Scheduled maintenance: it waits for its time in a schedule that fires, moves with its updates, and goes when it is
//! called off.
//!
//! Reason: whole way.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use spillway_bed::NodeOptions;
use spillway_bed::aws::Schedule;
use spillway_bed::lambda::LambdaOptions;
use spillway_bed::pods::PodShape;
use spillway_e2e::maintenance::{Maintenance, in_s};
use spillway_e2e::{Stage, ended, receipt, sample};

/// Long enough for a drain of quick pods, and for two seconds of margin.
const LEAD_S: i64 = 60;

/// A stage whose function begins maintenance so long before it starts.
async fn stage(name: &str, lead_s: i64) -> Stage {
    let env = [("SPILLWAY_MAINTENANCE_LEAD_S".to_owned(), lead_s.to_string())].into();
    Stage::set_with(name, NodeOptions::default())
        .await
        .with_function(LambdaOptions { env, ..LambdaOptions::default() })
        .await
}

async fn schedules(stage: &Stage) -> Vec<Schedule> {
    stage.world.aws_side().schedules(stage.lambda.access_key_id()).await.expect("Scheduler is there")
}

#[tokio::test]
async fn maintenance_is_drained_its_lead_before_it_starts_and_not_when_it_is_announced() {
    let stage = stage("waits", LEAD_S).await;
    stage.deploy("quick", 2, PodShape::default().exits_after(Duration::from_secs(1))).await;
    let maintenance = Maintenance::of(&stage.node.instance_id, in_s(LEAD_S + 600));
    let begins = maintenance.starts - SignedDuration::from_secs(LEAD_S);

    let announced = stage.notify(&maintenance.notice("announced")).await;

    let id = &stage.node.instance_id;
    let reason = format!("maintenance of {id} begins at {}; its drain is scheduled for {begins}", maintenance.starts);
    assert_eq!(ended(&announced), ("continued".to_owned(), reason));
    assert!(!stage.is_cordoned().await, "its time has not come");
    let failures = schedules(&stage).await[0].dead_letters.clone();
    assert!(failures.as_ref().is_some_and(|queue| queue.contains(":spillway-Failures-")), "{failures:?}");

    // A wait of less than two minutes is slept.
    let sooner = maintenance.moved_to(in_s(LEAD_S + 25));
    let drained = stage.notify(&sooner.notice("sooner")).await;

    assert_eq!(ended(&drained).0, "drained", "{drained:#?}");
    let receipt = receipt(&drained);
    assert_eq!(receipt["notice"]["event_id"], "sooner");
    assert_eq!(receipt["notice"]["deadline"], json!(sooner.starts));
    assert!(stage.is_cordoned().await);
}

#[tokio::test]
async fn maintenance_that_is_called_off_after_its_drain_has_its_node_given_back() {
    let stage = stage("maintenance-over", 3600).await;
    let maintenance = Maintenance::of(&stage.node.instance_id, in_s(60));
    let drained = stage.notify(&maintenance.notice("announced")).await;
    assert_eq!(ended(&drained).0, "drained", "its lead has begun: {drained:#?}");
    assert!(stage.is_cordoned().await);

    let closed = stage.notify(&maintenance.closed("closed")).await;

    let node = &stage.node.name;
    let reason = format!("node {node} is given back to use: its maintenance is over, called off or put off");
    assert_eq!(ended(&closed), ("done".to_owned(), reason));
    assert!(stage.is_untouched().await);
}

/// EC2 names the maintenance. It is scheduled once, the notice of AWS Health takes its place, and what EC2 calls off or moves is
/// not begun.
#[tokio::test]
async fn maintenance_without_a_notice_is_looked_up_and_scheduled() {
    let stage = Stage::set("found").await;
    let (aws, id) = (stage.world.aws_side(), stage.node.instance_id.as_str());
    let maintenance = Maintenance::of(id, in_s(14 * 86_400));
    let begins = maintenance.starts - SignedDuration::from_hours(1);
    let named = |description: &str, starts: Timestamp| json!({"InstanceEventId": "instance-event-1", "Code": "system-reboot", "Description": description, "NotBefore": starts.to_string()});
    aws.announce(id, &[named("It needs maintenance", maintenance.starts)]).await.expect("EC2 names it");

    let found = ended(&stage.lambda.invoke(&sample("maintenance-lookup")).await);
    let in_words = "scheduled maintenance events of nodes in EC2: 1; without a schedule:";
    assert_eq!(found, ("continued".to_owned(), format!("{in_words} 1, handed on now: {id}")));
    let announced = stage.lambda.invoke(stage.continuation().await).await;

    assert_eq!(ended(&announced).0, "continued", "{announced:#?}");
    let begun = schedules(&stage).await.remove(0);
    assert!(begins <= begun.at && begun.at < maintenance.starts, "it begins within the lead: {begun:?}");
    let again = ended(&stage.lambda.invoke(&sample("maintenance-lookup")).await);
    assert_eq!(again, ("ignored".to_owned(), format!("{in_words} 0")), "it is scheduled by now");

    for (description, starts, reason) in [
        ("[Canceled] It needs maintenance", maintenance.starts, "EC2 no longer lists the maintenance"),
        (
            "It needs maintenance",
            maintenance.starts + SignedDuration::from_hours(24),
            "its drain is scheduled for that time",
        ),
    ] {
        aws.announce(id, &[named(description, starts)]).await.expect("EC2 names it");
        let ignored = ended(&stage.lambda.invoke(&begun.input).await);
        assert!(ignored.0 == "ignored" && ignored.1.contains(reason), "{ignored:?}");
    }
    let moved = stage.lambda.invoke(stage.continuation().await).await;
    assert!(ended(&moved).1.contains("its drain is scheduled for"), "{moved:#?}");

    let received = maintenance.moved_to(maintenance.starts + SignedDuration::from_mins(30));
    stage.notify(&received.notice("health")).await;

    let left: Vec<String> = schedules(&stage).await.into_iter().map(|schedule| schedule.name).collect();
    assert!(left.contains(&format!("{id}.{}", received.id)), "{left:?}");
    assert_eq!(left.len(), 2, "what was found for that hour is gone, and the next day's is another: {left:?}");
}
