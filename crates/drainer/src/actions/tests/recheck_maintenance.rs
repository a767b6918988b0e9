use spillway_core::instance::InstanceState;
use spillway_notice::Maintenance;

use super::*;
use crate::actions::recheck_maintenance::over_or_moved;

const STARTS: &str = "1970-01-01T01:00:00Z";

/// EC2's description of the event of the notice, or of none.
fn event(description: Option<&str>, starts: &str) -> Expected {
    let event = description.map(|description| {
        format!(
            "<item><instanceEventId>e-1</instanceEventId><code>system-reboot</code>\
             <description>{description}</description><notBefore>{starts}</notBefore></item>"
        )
    });
    scheduled_events(&event.unwrap_or_default())
}

/// Maintenance that was found in EC2 and starts at [`STARTS`].
fn found() -> Case {
    let mut case = Case::of(Kind::Maintenance, Deadline::Hard(at(STARTS)));
    let id = "found-reboot-19700101T01".to_owned();
    case.notice.maintenance = Some(Maintenance { id, reboots: true, starts: Some(at(STARTS)) });
    case
}

async fn reason(case: Case, aws: impl IntoIterator<Item = Expected>) -> Option<Reason> {
    let context = TestContext::new(&[], [], aws);
    over_or_moved(&context, &case.attempt(&context).await, &case.instance).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn found_maintenance_is_drained_for_while_ec2_lists_it() {
    let over = || Some(Reason::NoLongerNamed(instance_id()));
    for (description, expected) in
        [(Some("scheduled reboot"), None), (Some("[Completed] scheduled reboot"), over()), (None, over())]
    {
        assert_eq!(reason(found(), [event(description, STARTS)]).await, expected, "{description:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn moved_maintenance_is_handed_on_with_its_new_start() {
    let later = "1970-01-01T03:00:00Z";
    let moved = reason(found(), [event(Some("scheduled reboot"), later), invoked().with("03:00:00")]).await;
    assert_eq!(moved, Some(Reason::Moved { instance: instance_id(), starts: at(later) }));
}

#[tokio::test(start_paused = true)]
async fn announced_maintenance_and_a_down_instance_cost_no_call() {
    let (mut down, mut announced) = (found(), found());
    down.instance.state = InstanceState::Down;
    announced.notice.maintenance = Some(maintenance("M-1"));
    for case in [down, announced] {
        assert_eq!(reason(case, []).await, None);
    }
}
