use spillway_core::node::uncordon::UncordonResult;
use spillway_core::outcome::Outcome;
use spillway_notice::{Kind, Maintenance};

use crate::actions::postpone::{Postponement, postpone};
use crate::failure::Failure;
use crate::receipt::record::Record;
use crate::test_support::api_server::{NODE, NODE_PATH, claimed, node};
use crate::test_support::at;
use crate::test_support::aws::{json_error, not_scheduled, scheduled};
use crate::test_support::context::{Case, TestContext};
use crate::test_support::script::{Expected, call};

const SCHEDULE: &str = "i-0123456789abcdef0.M-1";
const SECOND: &str = "i-0123456789abcdef0.M-1.again";

async fn postponed<const API: usize, const AWS: usize>(
    api: [Expected; API],
    aws: [Expected; AWS],
) -> Result<UncordonResult, Failure> {
    let (context, mut case) = (TestContext::new(&[], api, aws), Case::spot());
    case.notice.kind = Kind::Maintenance;
    case.notice.maintenance = Some(Maintenance { id: "M-1".to_owned(), reboots: true, starts: None });
    case.history = case.history.with(Record::default().in_short(&case.notice, &case.invocation), None);
    let attempt = case.attempt(&context).await;
    let begins = at("1970-01-02T00:00:00Z");
    let (why, mut record) = (Postponement::Scheduled, Record::default());
    match postpone(&context, &case.target(&attempt), begins, why, &mut record).await? {
        Outcome::Postponed { uncordoned, .. } => Ok(uncordoned),
        other => panic!("{other:?}"),
    }
}

/// Schedules that have fired would fill the account's quota.
const DELETES_ITSELF: &str = r#""ActionAfterCompletion":"DELETE""#;

fn looked_at() -> Expected {
    call(format!("GET {NODE_PATH}")).says(200, node())
}

fn untouched() -> UncordonResult {
    UncordonResult::NotOurs { node: NODE.to_owned() }
}

#[tokio::test(start_paused = true)]
async fn what_begins_later_comes_again_by_a_schedule() {
    let schedule = scheduled(SCHEDULE).with("at(1970-01-02T00:00:00)").with("spillway-continuation").with("e-1");
    let schedule = schedule.with(r#"\"earlier\":[]"#).with(DELETES_ITSELF);
    assert_eq!(postponed([looked_at()], [schedule, not_scheduled(SECOND)]).await.unwrap(), untouched());
}

#[tokio::test(start_paused = true)]
async fn an_update_moves_the_schedule_that_is_there() {
    let exists = call(format!("POST /schedules/{SCHEDULE}")).says(409, json_error("ConflictException"));
    let moved = call(format!("PUT /schedules/{SCHEDULE}")).with("at(1970-01-02T00:00:00)");
    let moved = moved.with(DELETES_ITSELF).says(200, r#"{"ScheduleArn": "arn"}"#);
    assert_eq!(postponed([looked_at()], [exists, moved, not_scheduled(SECOND)]).await.unwrap(), untouched());
}

#[tokio::test(start_paused = true)]
async fn a_schedule_that_fires_while_it_is_moved_is_made_again() {
    let exists = call(format!("POST /schedules/{SCHEDULE}")).says(409, json_error("ConflictException"));
    let fired = call(format!("PUT /schedules/{SCHEDULE}")).says(404, json_error("ResourceNotFoundException"));
    let aws = [exists, fired, scheduled(SCHEDULE), not_scheduled(SECOND)];
    assert_eq!(postponed([looked_at()], aws).await.unwrap(), untouched());
}

#[tokio::test(start_paused = true)]
async fn a_drain_that_had_begun_by_the_earlier_time_is_given_back() {
    let mut ours = claimed(Kind::Maintenance.as_str(), "e-0", "r-0");
    let annotation = ours["metadata"]["annotations"]["spillway/claim"].as_str().unwrap();
    let annotation = annotation.replacen('{', r#"{"maintenance":"M-1","#, 1);
    ours["metadata"]["annotations"]["spillway/claim"] = annotation.into();
    let api = [
        call(format!("GET {NODE_PATH}")).says(200, ours),
        call(format!("PATCH {NODE_PATH}")).with(r#""op":"remove","path":"/spec/unschedulable""#).says(200, node()),
    ];
    let given_back = UncordonResult::GivenBack { node: NODE.to_owned() };
    assert_eq!(postponed(api, [scheduled(SCHEDULE), not_scheduled(SECOND)]).await.unwrap(), given_back);
}

#[tokio::test(start_paused = true)]
async fn a_schedule_that_is_denied_is_a_failure() {
    let denied = call(format!("POST /schedules/{SCHEDULE}")).says(403, json_error("AccessDeniedException"));
    assert_eq!(postponed([looked_at()], [denied]).await.unwrap_err().error_type(), "AwsDenied");
}
