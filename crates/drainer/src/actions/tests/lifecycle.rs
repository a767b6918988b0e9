use super::*;
use crate::actions::lifecycle::HandlingStage::{Decided, Undecided};
use crate::actions::lifecycle::{complete, no_node, not_a_node, result_after_failure};

fn refused(status: u16, body: String) -> Expected {
    call("CompleteLifecycleAction").says(status, body)
}

fn denied() -> Expected {
    refused(403, query_error("AccessDenied", "why"))
}

fn pods_lost() -> Failure {
    Failure::PodsLost { node: "n-1".to_owned(), lost: 1, all: 1 }
}

#[tokio::test(start_paused = true)]
async fn completion_is_retried_unless_it_is_denied_or_late() {
    let broken = refused(500, query_error("InternalFailure", "why"));
    let lost = call("CompleteLifecycleAction").lost();
    for (answers, error_type, hook) in [
        (vec![broken, lost, completed("CONTINUE")], None, HookStatus::Completed(Continue)),
        (vec![refused(400, waits_no_more())], None, HookStatus::AlreadyOver(Some(Continue))),
        (vec![denied()], Some("AwsDenied"), HookStatus::Failed(Continue)),
    ] {
        let context = TestContext::new(&[], [], [hook_described()].into_iter().chain(answers));
        let (case, mut record) = (Case::held(Kind::Terminate), Record::default());
        let attempt = case.attempt(&context).await;
        let done = complete(&attempt, Continue, &mut record).await;
        assert_eq!((done.err().map(|failure| failure.error_type()), record.hook), (error_type, hook));
    }
}

#[tokio::test(start_paused = true)]
async fn late_notice_without_a_node_is_too_late() {
    for (sent_s, deadline_s, is_too_late, why) in [
        (-300, -180, true, "the node may have gone with its instance"),
        (0, 120, false, "it came in time"),
        (-180, -180, false, "it could not come before"),
    ] {
        let (context, mut case) = (TestContext::new(&[], [], []), Case::spot());
        let from_now = |seconds| Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds);
        (case.notice.time, case.notice.deadline) = (from_now(sent_s), Deadline::Hard(from_now(deadline_s)));
        let attempt = case.attempt(&context).await;
        match no_node(&context, &case.target(&attempt), &mut Record::default()).await {
            Err(failure) => assert_eq!((failure.error_type(), is_too_late), ("TooLate", true), "{why}"),
            Ok(Outcome::Ignored(Reason::NoNode { .. })) => assert!(!is_too_late, "{why}"),
            Ok(outcome) => panic!("{why}: {outcome:?}"),
        }
    }
}

/// Ends a notice with a hook whose instance is in no cluster.
async fn without_cluster(variables: &[(&str, &str)], completed: Option<Expected>) -> (Outcome, HookStatus) {
    let context = TestContext::new(variables, [], [hook_described()].into_iter().chain(completed));
    let (case, mut record) = (Case::held(Kind::Terminate), Record::default());
    let attempt = case.attempt(&context).await;
    let reason = Reason::NoCluster(instance_id());
    let outcome = not_a_node(&context, &attempt, reason, &mut record).await.unwrap();
    (outcome, record.hook)
}

#[tokio::test(start_paused = true)]
async fn hook_without_a_node_gets_the_result_of_its_setting() {
    let reason = || Reason::NoCluster(instance_id());
    assert_eq!(without_cluster(&[], None).await, (Outcome::Ignored(reason()), HookStatus::Left));
    for (setting, result) in [("CONTINUE", Continue), ("ABANDON", Abandon)] {
        let ended = without_cluster(&[("SPILLWAY_HOOKS_WITHOUT_NODE", setting)], Some(completed(setting))).await;
        assert_eq!(ended, (Outcome::NotANode { reason: reason() }, HookStatus::Completed(result)));
    }
    let dry = [("SPILLWAY_HOOKS_WITHOUT_NODE", "CONTINUE"), ("SPILLWAY_DRY_RUN", "true")];
    let (outcome, hook) = without_cluster(&dry, None).await;
    assert!(matches!(outcome, Outcome::WouldHave(_)), "{outcome:?}");
    assert_eq!(hook, HookStatus::Left);
}

#[tokio::test(start_paused = true)]
async fn result_depends_on_the_failure_and_its_stage() {
    let variables = [("SPILLWAY_HOOKS_WITHOUT_NODE", "ABANDON"), ("SPILLWAY_LAUNCH", "ABANDON")];
    let context = TestContext::new(&variables, [], [hook_described(), hook_described()]);
    let (terminate, launch) = (Case::held(Kind::Terminate), Case::held(Kind::Launch));
    let (terminate, launch) = (terminate.attempt(&context).await, launch.attempt(&context).await);
    let denied = |call| Failure::Aws(CallError::answered(call, "AccessDenied", "why", None));
    let of = |attempt, failure: Failure, stage| result_after_failure(attempt, &failure, stage, &context.settings);

    assert_eq!(of(&terminate, pods_lost(), Decided), Some(Continue), "pods are left");
    assert_eq!(of(&launch, pods_lost(), Decided), Some(Abandon), "SPILLWAY_LAUNCH");
    assert_eq!(of(&terminate, pods_lost(), Undecided), Some(Abandon), "the instance's cluster is unknown");
    assert_eq!(of(&terminate, denied("eks:DescribeCluster"), Decided), Some(Abandon), "the cluster denies access");
    assert_eq!(of(&terminate, denied("ec2:DescribeInstances"), Decided), None, "the right may be granted");
    assert_eq!(of(&Case::spot().attempt(&context).await, pods_lost(), Decided), None, "there is no hook");
}
