use spillway_core::instance::InstanceState;
use spillway_core::node::uncordon::{NotYet, UncordonCause};
use spillway_core::outcome::UncordonOutcome;
use spillway_notice::undo_check::UndoCheck;

use super::*;
use crate::actions::undo_check::{DueCheck, check, check_later_or_fail, schedule_first_check};
use crate::test_support::context::claim;

/// Runs the check of that number.
async fn checked<const API: usize, const AWS: usize>(
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

fn rebalance() -> Case {
    Case::of(Kind::Rebalance, Deadline::Open)
}

fn running() -> Case {
    Case::of(Kind::Running, Deadline::Open)
}

fn undo_check(number: u32) -> UndoCheck {
    UndoCheck { notice: json!({"id": "e-1"}), instance: NODE.to_owned(), number }
}

fn not_ready() -> Expected {
    let mut node = claimed(Kind::Rebalance.as_str(), "e-1", "r-0");
    node["status"]["conditions"] = json!([{"type": "Ready", "status": "False"}]);
    read_node(node)
}

#[tokio::test(start_paused = true)]
async fn node_that_is_not_ready_is_checked_again_for_a_day() {
    let next = scheduled(&format!("{NODE}.rebalance-recommendation.4")).with("at(1970-01-01T00:10:00)");
    let (why, at) = (NotYet::NotReady, at("1970-01-01T00:10:00Z"));
    let again = UncordonOutcome::CheckedTooEarly { node: NODE.to_owned(), why, at };
    assert_eq!(checked(rebalance(), 3, [not_ready()], [next]).await.unwrap(), again);
    let failure = checked(rebalance(), 24 * 6 - 1, [not_ready()], []).await.unwrap_err();
    assert!(matches!(failure, Failure::NotBack { .. }), "{failure:?}");
}

#[tokio::test(start_paused = true)]
async fn cluster_that_is_silent_for_fifteen_seconds_is_checked_again() {
    let busy = call(format!("GET {NODE_PATH}")).says(503, status(503, "ServiceUnavailable", "nodes")).repeated();
    let next = scheduled(&format!("{NODE}.rebalance-recommendation.1")).with("at(1970-01-01T00:10:15)");
    let outcome = checked(rebalance(), 0, [busy], [next]).await.unwrap();
    assert!(matches!(outcome, UncordonOutcome::NotReached { .. }), "{outcome:?}");
}

#[tokio::test(start_paused = true)]
async fn instance_that_goes_down_again_is_left_to_its_notice() {
    let mut case = running();
    case.instance.state = InstanceState::GoingDown;
    let outcome = checked(case, 0, [], []).await.unwrap();
    assert!(matches!(outcome, UncordonOutcome::Ignored(Reason::NotUp(_))), "{outcome:?}");
}

#[tokio::test(start_paused = true)]
async fn check_is_scheduled_again_for_ten_seconds() {
    let name = format!("{NODE}.rebalance-recommendation.0");
    let broken = || call(format!("POST /schedules/{name}")).says(500, json_error("InternalServerException"));
    for (aws, is_scheduled) in [(vec![broken(), scheduled(&name)], true), (vec![broken().repeated()], false)] {
        let (context, case, began) = (TestContext::new(&[], [], aws), rebalance(), Instant::now());
        let arranged = schedule_first_check(&context, &case.attempt(&context).await, &claim("e-1")).await;
        assert_eq!((arranged.is_ok(), began.elapsed().as_secs() == 10), (is_scheduled, !is_scheduled));
    }
}

fn unanswered() -> Failure {
    CallError::unanswered("ec2:DescribeInstances", "why").into()
}

#[tokio::test(start_paused = true)]
async fn later_descriptions_are_spread_over_ten_minutes() {
    let context = TestContext::new(&[], [], [scheduled(&format!("{NODE}.instance-running.1")).repeated()]);
    let (case, check, mut latest) = (running(), undo_check(0), Timestamp::UNIX_EPOCH);
    for _ in 0..50 {
        let (notice, invocation, mut record) = (&case.notice, &case.invocation, Record::default());
        let outcome =
            check_later_or_fail(&context, notice, &check, unanswered(), invocation, &mut record).await.unwrap();
        let UncordonOutcome::NotDescribed { at, .. } = outcome else { panic!("{outcome:?}") };
        latest = latest.max(at);
    }
    assert!((at("1970-01-01T00:15:00Z")..at("1970-01-01T00:20:00Z")).contains(&latest), "{latest}");
}

#[tokio::test(start_paused = true)]
async fn only_an_unanswered_running_instance_is_described_later() {
    let denied = CallError::answered("ec2:DescribeInstances", "AccessDenied", "why", None).into();
    for (case, failure) in [(rebalance(), unanswered()), (running(), denied)] {
        let (context, check, mut record) = (TestContext::new(&[], [], []), undo_check(0), Record::default());
        let outcome = check_later_or_fail(&context, &case.notice, &check, failure, &case.invocation, &mut record).await;
        assert!(matches!(outcome, Err(Failure::Aws(_))), "{outcome:?}");
    }
}
