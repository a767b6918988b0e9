use jiff::{SignedDuration, Timestamp};
use spillway_core::decision::Reason;
use spillway_core::outcome::Outcome;
use spillway_notice::{Deadline, Kind};
use spillway_settings::LifecycleResult::{Abandon, Continue};

use crate::actions::lifecycle::Stage::{Decided, Undecided};
use crate::actions::lifecycle::{complete, last_answer, no_node, not_a_node};
use crate::aws::CallError;
use crate::failure::Failure;
use crate::receipt::record::{HookStatus, Record};
use crate::test_support::aws::{completed, hook_described, query_error, waits_no_more};
use crate::test_support::context::{Case, TestContext};
use crate::test_support::script::{Expected, call};

/// What completing with `CONTINUE` came to, and what became of the hook.
async fn completing<const AWS: usize>(aws: [Expected; AWS]) -> (Result<(), Failure>, HookStatus) {
    let (context, mut record) = (TestContext::new(&[], [], aws), Record::default());
    let case = Case::held(Kind::Terminate);
    let attempt = case.attempt(&context).await;
    let done = complete(&attempt, Continue, &mut record).await;
    (done, record.hook)
}

fn refused(status: u16, body: String) -> Expected {
    call("CompleteLifecycleAction").says(status, body)
}

#[tokio::test(start_paused = true)]
async fn a_hook_is_completed_with_its_result() {
    let (done, hook) = completing([hook_described(), completed("CONTINUE")]).await;
    assert_eq!((done.is_ok(), hook), (true, HookStatus::Completed(Continue)));
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_waits_no_longer_is_no_failure() {
    let (done, hook) = completing([hook_described(), refused(400, waits_no_more())]).await;
    assert_eq!((done.is_ok(), hook), (true, HookStatus::AlreadyOver(Some(Continue))));
}

#[tokio::test(start_paused = true)]
async fn a_hook_is_completed_again_and_again_until_auto_scaling_answers() {
    let broken = refused(500, query_error("InternalFailure", "why"));
    let lost = call("CompleteLifecycleAction").lost();
    let (done, hook) = completing([hook_described(), broken, lost, completed("CONTINUE")]).await;
    assert_eq!((done.is_ok(), hook), (true, HookStatus::Completed(Continue)));
}

#[tokio::test(start_paused = true)]
async fn a_right_that_is_missing_to_complete_is_a_failure() {
    let denied = refused(403, query_error("AccessDenied", "why"));
    let (done, hook) = completing([hook_described(), denied]).await;
    assert_eq!((done.unwrap_err().error_type(), hook), ("AwsDenied", HookStatus::Failed(Continue)));
}

/// What a notice comes to whose node is not there, by when it was sent and its deadline, in seconds from now.
async fn without_node(sent_s: i64, deadline_s: i64) -> Result<Outcome, Failure> {
    let (context, mut case) = (TestContext::new(&[], [], []), Case::spot());
    let from_now = |seconds| Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds);
    (case.notice.time, case.notice.deadline) = (from_now(sent_s), Deadline::Hard(from_now(deadline_s)));
    let attempt = case.attempt(&context).await;
    no_node(&context, &case.target(&attempt), &mut Record::default()).await
}

#[tokio::test(start_paused = true)]
async fn a_notice_that_came_when_the_node_had_gone_with_its_instance_is_too_late() {
    assert_eq!(without_node(-300, -180).await.unwrap_err().error_type(), "TooLate");
    for (sent_s, deadline_s, why) in [(0, 120, "it came in time"), (-180, -180, "it could not come before")] {
        let outcome = without_node(sent_s, deadline_s).await.unwrap();
        assert!(matches!(outcome, Outcome::Ignored(Reason::NoNode { .. })), "{why}: {outcome:?}");
    }
}

/// What becomes of a hook whose instance is in no cluster.
async fn of_nobody<const AWS: usize>(variables: &[(&str, &str)], aws: [Expected; AWS]) -> (Outcome, HookStatus) {
    let (context, mut record) = (TestContext::new(variables, [], aws), Record::default());
    let case = Case::held(Kind::Terminate);
    let attempt = case.attempt(&context).await;
    let reason = Reason::NoCluster("i-1".to_owned());
    let outcome = not_a_node(&context, &attempt, reason, &mut record).await.unwrap();
    (outcome, record.hook)
}

#[tokio::test(start_paused = true)]
async fn the_hook_of_an_instance_that_is_no_node_gets_what_the_setting_says() {
    let reason = || Reason::NoCluster("i-1".to_owned());
    let left = of_nobody(&[], [hook_described()]).await;
    assert_eq!(left, (Outcome::Ignored(reason()), HookStatus::Left));
    for (setting, result) in [("CONTINUE", Continue), ("ABANDON", Abandon)] {
        let aws = [hook_described(), completed(setting)];
        let told = of_nobody(&[("SPILLWAY_HOOKS_WITHOUT_NODE", setting)], aws).await;
        assert_eq!(told, (Outcome::NotANode { reason: reason() }, HookStatus::Completed(result)));
    }
    let dry = [("SPILLWAY_HOOKS_WITHOUT_NODE", "CONTINUE"), ("SPILLWAY_DRY_RUN", "true")];
    let (outcome, hook) = of_nobody(&dry, [hook_described()]).await;
    assert!(matches!(outcome, Outcome::WouldHave(_)), "{outcome:?}");
    assert_eq!(hook, HookStatus::Left);
}

#[tokio::test(start_paused = true)]
async fn the_last_answer_depends_on_what_failed_and_how_far_it_had_come() {
    let variables = [("SPILLWAY_HOOKS_WITHOUT_NODE", "ABANDON"), ("SPILLWAY_LAUNCH", "ABANDON")];
    let context = TestContext::new(&variables, [], [hook_described(), hook_described()]);
    let (terminate, launch) = (Case::held(Kind::Terminate), Case::held(Kind::Launch));
    let (terminate, launch) = (terminate.attempt(&context).await, launch.attempt(&context).await);
    let may_pass = || Failure::PodsLost { node: "n-1".to_owned(), lost: 1, all: 1 };
    let denied = || Failure::Aws(CallError::answered("ec2:DescribeInstances", "AccessDenied", "why", None));
    let no_access = || Failure::Aws(CallError::answered("eks:DescribeCluster", "AccessDenied", "why", None));
    let of = |attempt, failure: Failure, stage| last_answer(attempt, &failure, stage, &context.settings);

    assert_eq!(of(&terminate, may_pass(), Decided), Some(Continue), "pods are left");
    assert_eq!(of(&launch, may_pass(), Decided), Some(Abandon), "SPILLWAY_LAUNCH");
    assert_eq!(of(&terminate, may_pass(), Undecided), Some(Abandon), "whose it is was not seen");
    assert_eq!(of(&terminate, no_access(), Decided), Some(Abandon), "we are not let in");
    assert_eq!(of(&terminate, denied(), Decided), None, "somebody may give us the right");
    assert_eq!(of(&Case::spot().attempt(&context).await, may_pass(), Decided), None, "there is no hook");
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_had_its_answer_or_is_over_gets_no_last_one() {
    let pods_lost = || Failure::PodsLost { node: "n-1".to_owned(), lost: 1, all: 1 };
    let over = || call("RecordLifecycleActionHeartbeat").says(400, waits_no_more());
    let denied = || refused(403, query_error("AccessDenied", "why"));
    for (ending, is_completed) in [(completed("CONTINUE"), true), (denied(), true), (over(), false)] {
        let context = TestContext::new(&[], [], [hook_described(), ending]);
        let case = Case::held(Kind::Terminate);
        let attempt = case.attempt(&context).await;
        assert_eq!(last_answer(&attempt, &pods_lost(), Decided, &context.settings), Some(Continue));
        if is_completed {
            drop(complete(&attempt, Continue, &mut Record::default()).await);
        } else {
            attempt.hold_action_during(attempt.wait_until_action_is_over()).await;
        }
        assert_eq!(last_answer(&attempt, &pods_lost(), Decided, &context.settings), None);
    }
}
