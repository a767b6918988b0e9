use std::time::Duration;

use serde_json::json;
use spillway_core::drain::report::Parked;
use spillway_core::outcome::Outcome;
use spillway_notice::Kind;
use tokio::time::Instant;

use crate::actions::continue_next::continue_next;
use crate::failure::Failure;
use crate::receipt::record::{HookStatus, Record};
use crate::test_support::aws::{INVOKE, heartbeat, hook_described, invoked, json_error, query_error, waits_no_more};
use crate::test_support::context::{Case, TestContext};
use crate::test_support::log::logged_in_time;
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
async fn a_hook_is_held_for_the_next_invocation() {
    let aws = [hook_described(), invoked().at_any_time(), heartbeat().at_any_time()];
    let (outcome, hook) = invoked_next(Case::held(Kind::Terminate), aws).await;
    assert_eq!((outcome.unwrap(), hook), (continued(), HookStatus::Held));
}

const QUEUE: [(&str, &str); 1] =
    [("SPILLWAY_PATIENT_QUEUE", "https://sqs.us-east-1.amazonaws.com/123456789012/patient")];

/// Hands on a drain of a hook that is parked, of which a pod is forced in so many minutes.
async fn parked<const AWS: usize>(forced_in: u64, sent: [Expected; AWS]) -> Result<Outcome, Failure> {
    let aws = [hook_described(), heartbeat().at_any_time()].into_iter().chain(sent);
    let context = TestContext::new(&QUEUE, [], aws);
    let forced_from = Some(Instant::now() + Duration::from_mins(forced_in));
    let parked = Parked { blocked_since: Some(Instant::now()), forced_from };
    let mut record = Record { parked: Some(parked), ..Record::default() };
    let case = Case::held(Kind::Terminate);
    let attempt = case.attempt(&context).await;
    continue_next(&context, &attempt, &unfinished(), &mut record).await
}

#[tokio::test(start_paused = true)]
async fn a_drain_that_is_parked_comes_back_from_the_queue_within_a_minute() {
    let sent = call("SendMessage").with(r#""DelaySeconds":45"#).with("parked").with("blocked_since");
    assert_eq!(parked(20, [sent.says(200, json!({})).at_any_time()]).await.unwrap(), continued());
}

#[tokio::test(start_paused = true)]
async fn a_drain_that_has_to_force_a_pod_soon_gets_an_invocation_of_its_own() {
    assert_eq!(parked(2, [invoked().at_any_time()]).await.unwrap(), continued());
}

#[test]
fn what_the_queue_does_not_take_gets_an_invocation_of_its_own() {
    let lines = logged_in_time(async {
        let denied = call("SendMessage").says(403, json_error("AccessDenied")).at_any_time();
        assert_eq!(parked(20, [denied, invoked().at_any_time()]).await.unwrap(), continued());
    });
    let told = "WARN: the queue of drains that can wait takes no message; going on without it";
    assert!(lines.iter().any(|line| line == told), "{lines:?}");
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_does_not_answer_is_waited_for_two_seconds() {
    let (hangs, began) = (call("SendMessage").at_any_time(), Instant::now());
    assert_eq!(parked(20, [hangs, invoked().at_any_time()]).await.unwrap(), continued());
    assert_eq!(began.elapsed().as_secs(), 2);
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

#[tokio::test(start_paused = true)]
async fn a_queue_that_is_busy_for_a_moment_is_asked_again() {
    let busy = call("SendMessage").says(503, json_error("ServiceUnavailable")).at_any_time();
    let sent = call("SendMessage").says(200, json!({})).at_any_time();
    assert_eq!(parked(20, [busy, sent]).await.unwrap(), continued());
}
