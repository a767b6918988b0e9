use super::*;
use crate::actions::continue_next::continue_next;

fn unfinished() -> Failure {
    Failure::PodsLost { node: "n-1".to_owned(), lost: 1, all: 2 }
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
async fn last_heartbeat_decides_the_state_of_the_hook() {
    let failed = call("RecordLifecycleActionHeartbeat").says(403, query_error("AccessDenied", "why"));
    for (beat, hook) in
        [(heartbeat(), HookStatus::Held), (hook_over(), HookStatus::AlreadyOver(None)), (failed, HookStatus::Left)]
    {
        let aws = [hook_described(), invoked().at_any_time(), beat.at_any_time()];
        let (context, mut record, case) =
            (TestContext::new(&[], [], aws), Record::default(), Case::held(Kind::Terminate));
        let attempt = case.attempt(&context).await;
        let outcome = continue_next(&context, &attempt, &unfinished(), &mut record).await.unwrap();
        assert_eq!((outcome, record.hook), (Outcome::Continued { unfinished: unfinished().text() }, hook));
    }
}
