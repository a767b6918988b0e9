use spillway_core::node::readiness::Readiness;

use super::*;
use crate::actions::launch::await_ready;

fn not_ready() -> Value {
    let mut node = node();
    node["status"]["conditions"] = json!([{"type": "Ready", "status": "False", "message": "no network"}]);
    node
}

/// The node never joins, by any name.
fn never_joined() -> [Expected; 2] {
    let searched = call("GET /api/v1/nodes").with("limit=100").says(200, list("Node", &[]));
    [no_node(), searched].map(|none| none.repeated().at_any_time())
}

async fn waited(
    api: impl IntoIterator<Item = Expected>,
    aws: impl IntoIterator<Item = Expected>,
) -> (Result<Outcome, Failure>, HookStatus) {
    let context = TestContext::new(&[("SPILLWAY_LAUNCH", "ABANDON")], api, aws);
    let (case, mut record) = (Case::held(Kind::Launch), Record::default());
    let attempt = case.attempt(&context).await;
    let target = case.target(&attempt);
    let outcome = attempt.with_heartbeats(await_ready(&context, &target, &mut record)).await;
    (outcome, record.hook)
}

#[tokio::test(start_paused = true)]
async fn hook_is_completed_when_the_joined_node_is_ready() {
    let mut ready = node();
    ready["metadata"]["resourceVersion"] = json!("8");
    let watched = watch_node().streams(&[watched("MODIFIED", &ready)]);
    let api = [no_node(), read_node(not_ready()), list_node(not_ready()), watched];
    let aws = [hook_described(), heartbeat().perhaps(), completed("CONTINUE")];
    let (outcome, hook) = waited(api, aws).await;
    let ready = Outcome::Ready { node: NODE.to_owned(), after_s: 2, uncordoned: None };
    assert_eq!((outcome.unwrap(), hook), (ready, HookStatus::Completed(Continue)));
}

#[tokio::test(start_paused = true)]
async fn instance_that_never_joins_is_a_failure() {
    let (outcome, hook) = waited(never_joined(), [hook_described(), heartbeat().repeated()]).await;
    let failure = outcome.unwrap_err();
    assert!(matches!(failure, Failure::NotReady { readiness: Readiness::NotJoined, .. }), "{failure:?}");
    assert_eq!(hook, HookStatus::Left);
}

#[tokio::test(start_paused = true)]
async fn launch_hook_that_is_over_ends_the_wait() {
    let (outcome, hook) = waited(never_joined(), [hook_described(), heartbeat(), hook_over()]).await;
    assert_eq!((outcome.unwrap(), hook), (Outcome::Ignored(Reason::LaunchIsOver), HookStatus::AlreadyOver(None)));
}
