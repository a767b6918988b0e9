use serde_json::json;
use spillway_core::decision::Reason;
use spillway_core::instance::InstanceState;
use spillway_core::node::uncordon::{NotYet, UncordonCause, UncordonResult};
use spillway_core::outcome::UncordonOutcome;
use spillway_notice::undo_check::UndoCheck;
use spillway_notice::{Deadline, Kind};
use tokio::time::Instant;

use crate::actions::undo_check::{DueCheck, arrange, ask_later, check};
use crate::aws::CallError;
use crate::failure::Failure;
use crate::receipt::record::Record;
use crate::test_support::api_server::{NODE, NODE_PATH, claimed, node, status};
use crate::test_support::at;
use crate::test_support::aws::{json_error, scheduled};
use crate::test_support::context::{Case, TestContext, claim};
use crate::test_support::script::{Expected, call};

/// The check of a rebalance recommendation's claim after so many others.
async fn checked<const API: usize, const AWS: usize>(
    number: u32,
    api: [Expected; API],
    aws: [Expected; AWS],
) -> Result<UncordonOutcome, Failure> {
    checked_of(Kind::Rebalance, number, api, aws).await
}

async fn checked_of<const API: usize, const AWS: usize>(
    kind: Kind,
    number: u32,
    api: [Expected; API],
    aws: [Expected; AWS],
) -> Result<UncordonOutcome, Failure> {
    checked_case(Case::of(kind, Deadline::Open), number, api, aws).await
}

async fn checked_case<const API: usize, const AWS: usize>(
    case: Case,
    number: u32,
    api: [Expected; API],
    aws: [Expected; AWS],
) -> Result<UncordonOutcome, Failure> {
    let context = TestContext::new(&[], api, aws);
    let (check_of, Case { notice, instance, cluster, .. }) = (undo_check(number), &case);
    let due = DueCheck { notice, check: &check_of, instance, cluster, cause: UncordonCause::Rebalance };
    check(&context, due, &case.invocation, &mut Record::default()).await
}

fn undo_check(number: u32) -> UndoCheck {
    UndoCheck { notice: json!({"id": "e-1"}), instance: NODE.to_owned(), number }
}

fn ours() -> serde_json::Value {
    claimed(Kind::Rebalance.as_str(), "e-1", "r-0")
}

fn not_ready() -> Expected {
    let mut node = ours();
    node["status"]["conditions"] = json!([{"type": "Ready", "status": "False"}]);
    call(format!("GET {NODE_PATH}")).says(200, node)
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_back_is_given_back() {
    let api = [
        call(format!("GET {NODE_PATH}")).says(200, ours()),
        call(format!("PATCH {NODE_PATH}")).with(r#""op":"remove","path":"/spec/unschedulable""#).says(200, node()),
    ];
    let outcome = checked(0, api, []).await.unwrap();
    assert!(
        matches!(outcome, UncordonOutcome::Uncordoned { result: UncordonResult::GivenBack { .. }, .. }),
        "{outcome:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_not_back_yet_is_looked_at_again_by_the_next_check() {
    let next = scheduled(&format!("{NODE}.rebalance-recommendation.4")).with("at(1970-01-01T00:10:00)");
    let outcome = checked(3, [not_ready()], [next]).await.unwrap();
    let (why, at) = (NotYet::NotReady, at("1970-01-01T00:10:00Z"));
    assert_eq!(outcome, UncordonOutcome::LookedAgain { node: NODE.to_owned(), why, at });
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_gives_no_answer_for_fifteen_seconds_is_asked_again_by_the_next_check() {
    let busy = call(format!("GET {NODE_PATH}")).says(503, status(503, "ServiceUnavailable", "nodes")).repeated();
    let next = scheduled(&format!("{NODE}.rebalance-recommendation.1")).with("at(1970-01-01T00:10:15)");
    let outcome = checked(0, [busy], [next]).await.unwrap();
    assert!(matches!(outcome, UncordonOutcome::NotReached { .. }), "{outcome:?}");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_not_back_after_a_day_is_a_failure() {
    let last = 24 * 6 - 1;
    let failure = checked(last, [not_ready()], []).await.unwrap_err();
    assert!(matches!(failure, Failure::NotBack { .. }), "{failure:?}");
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_does_not_let_us_in_is_none_of_ours_unless_we_have_claimed_a_node_there() {
    let denied = || call(format!("GET {NODE_PATH}")).says(403, status(403, "Forbidden", "nodes")).repeated();
    let outcome = checked_of(Kind::Running, 0, [denied()], []).await.unwrap();
    assert!(matches!(outcome, UncordonOutcome::Ignored(Reason::NotLetIn { code: 403, .. })), "{outcome:?}");
    assert_eq!(checked(0, [denied()], []).await.unwrap_err().error_type(), "KubernetesDenied");
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_ran_and_goes_down_is_another_notices() {
    let mut case = Case::of(Kind::Running, Deadline::Open);
    case.instance.state = InstanceState::GoingDown;
    let outcome = checked_case(case, 0, [], []).await.unwrap();
    assert_eq!(outcome, UncordonOutcome::Ignored(Reason::NotUp(NODE.to_owned())));
}

#[tokio::test(start_paused = true)]
async fn a_check_that_scheduler_does_not_take_is_arranged_by_another_call() {
    let name = format!("{NODE}.rebalance-recommendation.0");
    let broken = call(format!("POST /schedules/{name}")).says(500, json_error("InternalServerException"));
    let context = TestContext::new(&[], [], [broken, scheduled(&name)]);
    let case = Case::of(Kind::Rebalance, Deadline::Open);
    arrange(&context, &case.attempt(&context).await, &claim("e-1")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_check_that_scheduler_never_takes_delays_the_drain_by_ten_seconds() {
    let broken = call(format!("POST /schedules/{NODE}.rebalance-recommendation.0"));
    let context = TestContext::new(&[], [], [broken.says(500, json_error("InternalServerException")).repeated()]);
    let (case, began) = (Case::of(Kind::Rebalance, Deadline::Open), Instant::now());
    assert!(arrange(&context, &case.attempt(&context).await, &claim("e-1")).await.is_err());
    assert_eq!(began.elapsed().as_secs(), 10);
}

#[tokio::test(start_paused = true)]
async fn instances_that_aws_gave_no_answer_about_are_asked_for_at_times_that_are_spread_over_ten_minutes() {
    let context = TestContext::new(&[], [], [scheduled(&format!("{NODE}.instance-running.1")).repeated()]);
    let (case, check, mut times) = (Case::of(Kind::Running, Deadline::Open), undo_check(0), Vec::new());
    for _ in 0..50 {
        let (failure, mut record) = (CallError::unanswered("ec2:DescribeInstances", "why").into(), Record::default());
        let asked = ask_later(&context, &case.notice, &check, failure, &case.invocation, &mut record).await.unwrap();
        let UncordonOutcome::NotDescribed { at, .. } = asked else { panic!("{asked:?}") };
        times.push(at);
    }
    let latest = times.into_iter().max().unwrap();
    assert!((at("1970-01-01T00:15:00Z")..at("1970-01-01T00:20:00Z")).contains(&latest), "{latest}");
}

#[tokio::test(start_paused = true)]
async fn aws_is_asked_later_only_about_an_instance_that_runs_and_only_where_it_gave_no_answer() {
    let unanswered = || CallError::unanswered("ec2:DescribeInstances", "why");
    let denied = || CallError::answered("ec2:DescribeInstances", "AccessDenied", "why", None);
    for (kind, error) in [(Kind::Rebalance, unanswered()), (Kind::Running, denied())] {
        let (context, case) = (TestContext::new(&[], [], []), Case::of(kind, Deadline::Open));
        let (check, mut record) = (undo_check(0), Record::default());
        let asked = ask_later(&context, &case.notice, &check, error.into(), &case.invocation, &mut record).await;
        assert!(matches!(asked, Err(Failure::Aws(_))), "{asked:?}");
    }
}
