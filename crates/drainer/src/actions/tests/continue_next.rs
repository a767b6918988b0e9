use std::time::Duration;

use spillway_core::outcome::Outcome;
use spillway_notice::Kind;

use crate::actions::continue_next::continue_next;
use crate::failure::Failure;
use crate::receipt::record::{HookStatus, Record};
use crate::receipt::{Fate, PodRecord};
use crate::test_support::aws::{INVOKE, heartbeat, hook_described, invoked, json_error, query_error, waits_no_more};
use crate::test_support::context::{Case, TestContext};
use crate::test_support::script::{Expected, call};

fn unfinished() -> Failure {
    Failure::PodsLost { node: "n-1".to_owned(), lost: 1, all: 2 }
}

/// What it came to, and what became of the hook.
async fn invoked_next<const AWS: usize>(case: Case, aws: [Expected; AWS]) -> (Result<Outcome, Failure>, HookStatus) {
    let (context, mut record) = (TestContext::new(&[], [], aws), Record::default());
    let attempt = case.attempt(&context).await;
    let outcome = continue_next(&context, &attempt, &unfinished(), &mut record).await;
    (outcome, record.hook)
}

fn continued() -> Outcome {
    Outcome::Continued { unfinished: unfinished().text() }
}

#[tokio::test(start_paused = true)]
async fn what_is_left_goes_to_the_next_invocation_with_what_this_one_was() {
    let event = invoked().with("r-1").with("e-1");
    let (outcome, hook) = invoked_next(Case::spot(), [event]).await;
    assert_eq!((outcome.unwrap(), hook), (continued(), HookStatus::Left));
}

#[tokio::test(start_paused = true)]
async fn next_invocation_gets_the_pods_that_remain() {
    let left = r#""remaining":[{"pod":"shop/b","uid":"uid-b","fate":"remaining","grace_s":30"#;
    let pod =
        |name: &str, fate| PodRecord::of(format!("shop/{name}"), format!("uid-{name}"), fate, Duration::from_secs(30));
    let listed = || vec![pod("a", Fate::Clean), pod("b", Fate::Lost)];
    for (pods, before) in [(listed(), Vec::new()), (Vec::new(), vec![pod("b", Fate::Remaining)])] {
        let (context, mut case) = (TestContext::new(&[], [], [invoked().with(left)]), Case::spot());
        case.history.remaining = before;
        let mut record = Record { pods, ..Record::default() };
        let attempt = case.attempt(&context).await;
        continue_next(&context, &attempt, &unfinished(), &mut record).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_hook_is_held_for_the_next_invocation() {
    let aws = [hook_described(), invoked().at_any_time(), heartbeat().at_any_time()];
    let (outcome, hook) = invoked_next(Case::held(Kind::Terminate), aws).await;
    assert_eq!((outcome.unwrap(), hook), (continued(), HookStatus::Held));
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_waits_no_longer_is_told_as_over() {
    let over = call("RecordLifecycleActionHeartbeat").says(400, waits_no_more()).at_any_time();
    let aws = [hook_described(), invoked().at_any_time(), over];
    let (outcome, hook) = invoked_next(Case::held(Kind::Terminate), aws).await;
    assert_eq!((outcome.unwrap(), hook), (continued(), HookStatus::AlreadyOver(None)));
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_that_fails_stops_nobody_from_going_on() {
    let denied = query_error("AccessDenied", "why");
    let failed = call("RecordLifecycleActionHeartbeat").says(403, denied).at_any_time();
    let aws = [hook_described(), invoked().at_any_time(), failed];
    let (outcome, hook) = invoked_next(Case::held(Kind::Terminate), aws).await;
    assert_eq!((outcome.unwrap(), hook), (continued(), HookStatus::Left));
}

#[tokio::test(start_paused = true)]
async fn an_invocation_that_is_denied_is_a_failure_that_names_the_right() {
    let denied = call(INVOKE).says(403, json_error("AccessDeniedException"));
    let (outcome, _) = invoked_next(Case::spot(), [denied]).await;
    let failure = outcome.unwrap_err();
    assert_eq!(failure.error_type(), "AwsDenied");
    let text = "lambda:InvokeFunction is denied: the function's role lacks lambda:InvokeFunction, or a policy takes it away: \
         AccessDeniedException: why";
    assert_eq!(failure.text(), text);
}
