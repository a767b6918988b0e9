use spillway_core::decision::Reason;
use spillway_core::instance::InstanceState;
use spillway_notice::{Deadline, Kind, Maintenance};

use crate::actions::found::over;
use crate::test_support::aws::invoked;
use crate::test_support::context::{Case, TestContext};
use crate::test_support::script::{Expected, call};
use crate::test_support::{at, instance_id};

const STARTS: &str = "1970-01-01T01:00:00Z";

/// EC2 is asked for the instance's events, and names these.
fn named(events: &str) -> Expected {
    let status = format!("<item><instanceId>{}</instanceId><eventsSet>{events}</eventsSet></item>", instance_id());
    let answer = format!("<instanceStatusSet>{status}</instanceStatusSet>");
    call("DescribeInstanceStatus")
        .says(200, format!("<DescribeInstanceStatusResponse>{answer}</DescribeInstanceStatusResponse>"))
}

/// The event of the notice.
fn reboot(description: &str, starts: &str) -> String {
    format!(
        "<item><instanceEventId>e-1</instanceEventId><code>system-reboot</code>\
         <description>{description}</description><notBefore>{starts}</notBefore></item>"
    )
}

/// Why a maintenance that was found, and was to start at [`STARTS`], is not to be drained for.
async fn why_over<const AWS: usize>(aws: [Expected; AWS]) -> Option<Reason> {
    let (context, mut case) = (TestContext::new(&[], [], aws), Case::of(Kind::Maintenance, Deadline::Hard(at(STARTS))));
    let id = "found-reboot-19700101T01".to_owned();
    case.notice.maintenance = Some(Maintenance { id, reboots: true, starts: Some(at(STARTS)) });
    over(&context, &case.attempt(&context).await, &case.instance).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_maintenance_that_ec2_still_names_is_drained_for() {
    assert_eq!(why_over([named(&reboot("scheduled reboot", STARTS))]).await, None);
}

#[tokio::test(start_paused = true)]
async fn one_that_is_done_or_named_no_more_is_over() {
    for events in [String::new(), reboot("[Completed] scheduled reboot", STARTS)] {
        let instance = instance_id().to_string();
        assert_eq!(why_over([named(&events)]).await, Some(Reason::NoLongerNamed(instance)), "{events}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_was_moved_is_continued_with_its_new_time() {
    let later = "1970-01-01T03:00:00Z";
    let moved = why_over([named(&reboot("scheduled reboot", later)), invoked().with("03:00:00")]).await;
    assert_eq!(moved, Some(Reason::Moved { instance: instance_id().to_string(), starts: at(later) }));
}

#[tokio::test(start_paused = true)]
async fn of_an_instance_that_is_down_and_of_what_aws_health_told_ec2_is_not_asked() {
    let found = Some("found-reboot-19700101T01".to_owned());
    for (id, state) in [(found, InstanceState::Down), (None, InstanceState::Up)] {
        let (context, mut case) = (TestContext::new(&[], [], []), Case::of(Kind::Maintenance, Deadline::Open));
        let id = id.unwrap_or_else(|| "M-1".to_owned());
        case.notice.maintenance = Some(Maintenance { id, reboots: true, starts: None });
        case.instance.state = state;
        assert_eq!(over(&context, &case.attempt(&context).await, &case.instance).await.unwrap(), None);
    }
}
