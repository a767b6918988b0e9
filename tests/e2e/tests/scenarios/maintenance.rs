//! Scheduled maintenance: it waits for its time in a schedule that fires, moves with its updates, and goes when it is
//! called off.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use spillway_bed::NodeOptions;
use spillway_bed::aws::{Fault, Schedule};
use spillway_bed::lambda::LambdaOptions;
use spillway_bed::pods::PodShape;
use spillway_e2e::maintenance::{Maintenance, in_s};
use spillway_e2e::{Stage, ended, receipt, sample};

/// Long enough for a drain of quick pods, and for two seconds of margin.
const LEAD_S: i64 = 20;

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
    assert!(failures.as_ref().is_some_and(|queue| queue.ends_with(":spillway-Failures")), "{failures:?}");

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
async fn an_update_moves_the_drain_and_a_repeat_does_not_double_it() {
    let stage = stage("moves", 600).await;
    let first = Maintenance::of(&stage.node.instance_id, in_s(14 * 86_400));
    let (later, earlier) = (first.moved_to(in_s(20 * 86_400)), first.moved_to(in_s(2 * 86_400)));

    for (event_id, notice) in [("e-1", &first), ("e-1", &first), ("e-2", &later), ("e-3", &earlier)] {
        let outcome = stage.notify(&notice.notice(event_id)).await;
        assert_eq!(ended(&outcome).0, "continued", "{outcome:#?}");
        let scheduled = schedules(&stage).await;
        let named: Vec<_> = scheduled.iter().map(|schedule| (schedule.name.clone(), schedule.at)).collect();
        let name = format!("{}.{}", stage.node.instance_id, notice.id);
        assert_eq!(named, [(name, notice.starts - SignedDuration::from_secs(600))], "after {event_id}");
    }
    assert_eq!(
        schedules(&stage).await[0].input["spillway-continuation"]["notice"]["id"],
        "e-3",
        "what comes back is the latest"
    );
}

#[tokio::test]
async fn maintenance_that_is_called_off_is_not_begun() {
    let stage = stage("called-off", 3600).await;
    let maintenance = Maintenance::of(&stage.node.instance_id, in_s(14 * 86_400));
    stage.notify(&maintenance.notice("announced")).await;

    let closed = stage.notify(&maintenance.closed("closed")).await;

    let (id, node) = (&stage.node.instance_id, &stage.node.name);
    let reason =
        format!("the drain of {id} that was scheduled is called off; node {node} is none that we took out of use");
    assert_eq!(ended(&closed), ("done".to_owned(), reason));
    assert!(schedules(&stage).await.is_empty());
}

#[tokio::test]
async fn a_node_whose_maintenance_was_over_before_its_notice_came_is_given_back() {
    let stage = stage("over-before-its-notice", 3600).await;
    let maintenance = Maintenance::of(&stage.node.instance_id, in_s(60));

    let closed = stage.notify(&maintenance.closed("closed")).await;

    let (ending, reason) = ended(&closed);
    let not_yet = format!("node {} is not given back yet: nothing of ours is on it", stage.node.name);
    assert!(ending == "continued" && reason.starts_with(&not_yet), "{ending}: {reason}");
    assert_eq!(ended(&stage.notify(&maintenance.notice("announced")).await).0, "drained");
    assert!(stage.is_cordoned().await);
    let is_look = |schedule: &Schedule| schedule.input["spillway-undo-check"]["notice"]["id"] == "closed";
    let look = schedules(&stage).await.into_iter().find(is_look).expect("a look is scheduled");
    let looked = stage.lambda.invoke(&look.input).await;
    assert_eq!(looked.result.expect("it is no failure")["ending"], "done");
    assert!(stage.is_untouched().await);
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

#[tokio::test]
async fn maintenance_that_is_put_off_after_its_drain_has_its_node_given_back_until_then() {
    let stage = stage("put-off", 3600).await;
    let maintenance = Maintenance::of(&stage.node.instance_id, in_s(60));
    stage.notify(&maintenance.notice("announced")).await;
    let put_off = maintenance.moved_to(in_s(7 * 86_400));

    let outcome = stage.notify(&put_off.notice("put-off")).await;

    let (ending, reason) = ended(&outcome);
    let given_back = format!("node {}, which was drained for it, is given back until then", stage.node.name);
    assert!(ending == "continued" && reason.ends_with(&given_back), "{ending}: {reason}");
    assert!(stage.is_untouched().await);
    let name = format!("{}.{}", stage.node.instance_id, put_off.id);
    assert!(schedules(&stage).await.iter().any(|schedule| schedule.name == name), "it is drained again then");
}

#[tokio::test]
async fn what_was_scheduled_is_not_begun_again_when_aws_moves_its_start_so_near_that_it_begins_at_once() {
    let stage = stage("begins-at-once", 3600).await;
    let maintenance = Maintenance::of(&stage.node.instance_id, in_s(86_400));
    stage.notify(&maintenance.notice("announced")).await;

    let moved = stage.notify(&maintenance.moved_to(in_s(60)).notice("moved")).await;

    assert_eq!(ended(&moved).0, "drained", "{moved:#?}");
    let left: Vec<_> = schedules(&stage).await.into_iter().map(|schedule| schedule.what().to_owned()).collect();
    assert_eq!(left, ["spillway-undo-check"], "the drain that was scheduled has been done");
}

#[tokio::test]
async fn two_maintenances_of_one_instance_do_not_disturb_each_other() {
    let stage = stage("two", 3600).await;
    let near = Maintenance::of(&stage.node.instance_id, in_s(60));
    let far = near.another().moved_to(in_s(14 * 86_400));
    let waiting = || async {
        let all = schedules(&stage).await;
        all.into_iter().filter(|one| one.what() == "spillway-continuation").count()
    };
    stage.notify(&far.notice("far")).await;
    assert_eq!(ended(&stage.notify(&near.notice("near")).await).0, "drained");
    assert_eq!(waiting().await, 1, "the far one still waits");

    let other_is_over = stage.notify(&far.closed("far-closed")).await;

    assert_eq!(ended(&other_is_over).0, "done", "what was scheduled is called off");
    assert_eq!(waiting().await, 0);
    assert!(stage.is_cordoned().await, "the near one is not over");
    assert_eq!(ended(&stage.notify(&near.closed("near-closed")).await).0, "done");
    assert!(stage.is_untouched().await);
}

#[tokio::test]
async fn maintenance_of_several_instances_is_scheduled_for_each() {
    let stage = stage("each", 3600).await;
    let other = stage.world.add_node(NodeOptions::default()).await.expect("it joins");
    let mut notice = Maintenance::of(&stage.node.instance_id, in_s(14 * 86_400)).notice("announced");
    let ids = [&stage.node.instance_id, &other.instance_id];
    notice["detail"]["affectedEntities"] = ids.map(|id| json!({"entityValue": id, "status": "PENDING"})).into();

    assert_eq!(ended(&stage.notify(&notice).await).0, "continued");
    for _ in ids {
        assert_eq!(ended(&stage.lambda.invoke(stage.fired().await).await).0, "continued");
    }

    let scheduled = schedules(&stage).await;
    for id in ids {
        assert!(scheduled.iter().any(|schedule| schedule.name.starts_with(&format!("{id}."))), "{id}: {scheduled:?}");
    }
}

#[tokio::test]
async fn a_reboot_that_should_have_begun_drains_no_node_that_may_have_been_given_back() {
    let stage = stage("past", 3600).await;
    stage.deploy("quick", 1, PodShape::default().exits_after(Duration::from_secs(1))).await;
    let maintenance = Maintenance::of(&stage.node.instance_id, in_s(-7200));

    let outcome = stage.notify(&maintenance.notice("late")).await;

    let (ending, reason) = ended(&outcome);
    assert_eq!((ending.as_str(), reason.contains("was to begin before now")), ("ignored", true), "{reason}");
    assert!(stage.is_untouched().await);
    assert!(schedules(&stage).await.is_empty(), "nothing is to be undone");
}

#[tokio::test]
async fn without_a_place_for_schedules_the_notice_fails_and_names_the_setting() {
    let env = [("SPILLWAY_SCHEDULES".to_owned(), String::new())].into();
    let stage = Stage::set_with("no-place", NodeOptions::default()).await;
    let stage = stage.with_function(LambdaOptions { env, ..LambdaOptions::default() }).await;
    let maintenance = Maintenance::of(&stage.node.instance_id, in_s(14 * 86_400));

    let outcome = stage.notify(&maintenance.notice("announced")).await;

    let error = outcome.result.as_ref().expect_err("it cannot wait");
    assert_eq!(error.error_type, "NoSchedules");
    assert!(error.message.contains("the setting SPILLWAY_SCHEDULES is missing"), "{error}");

    let at_once = stage.notify(&maintenance.moved_to(in_s(60)).notice("moved")).await;
    assert_eq!(at_once.result.as_ref().expect_err("nobody will look").error_type, "NoSchedules");
    let receipt = receipt(&at_once);
    let drained = receipt["steps"].as_array().expect("it has steps").iter().any(|step| step["step"] == "drained");
    assert!(drained, "the drain does not wait for that: {receipt:#}");
}

#[tokio::test]
async fn a_schedule_that_may_not_be_made_names_the_right() {
    let stage = stage("denied-schedule", 3600).await;
    let fault = Fault {
        status: Some(403),
        code: Some("AccessDeniedException".to_owned()),
        message: Some("not authorized to perform: iam:PassRole".to_owned()),
        ..Fault::of(stage.lambda.access_key_id(), "scheduler", "CreateSchedule")
    };
    stage.world.aws_side().add_fault(&fault).await.expect("a fault");
    let notice = Maintenance::of(&stage.node.instance_id, in_s(14 * 86_400)).notice("announced");

    let outcome = stage.notify(&notice).await;

    let error = outcome.result.as_ref().expect_err("it cannot wait");
    assert_eq!(error.error_type, "AwsDenied");
    assert!(error.message.contains("scheduler:CreateSchedule") && error.message.contains("iam:PassRole"), "{error}");
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
        ("[Canceled] It needs maintenance", maintenance.starts, "names it no longer, or as done or called off"),
        ("It needs maintenance", maintenance.starts + SignedDuration::from_hours(24), "it is scheduled for then"),
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
