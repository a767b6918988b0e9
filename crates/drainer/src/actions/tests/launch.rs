use serde_json::{Value, json};
use spillway_core::decision::Reason;
use spillway_core::node::readiness::Readiness;
use spillway_core::outcome::Outcome;
use spillway_notice::Kind;
use spillway_settings::LifecycleResult;

use crate::actions::launch::await_ready;
use crate::context::Context;
use crate::failure::Failure;
use crate::receipt::record::{HookStatus, Record};
use crate::test_support::api_server::{NODE, NODE_PATH, list, node, status, watched};
use crate::test_support::aws::{completed, heartbeat, hook_described, waits_no_more};
use crate::test_support::context::{Case, TestContext};
use crate::test_support::script::{Expected, call};

const COMPLETE: [(&str, &str); 1] = [("SPILLWAY_LAUNCH", "ABANDON")];

fn not_joined() -> Expected {
    call(format!("GET {NODE_PATH}")).says(404, status(404, "NotFound", "nodes"))
}

fn joined(node: &Value) -> Expected {
    call(format!("GET {NODE_PATH}")).says(200, node)
}

fn not_ready() -> Value {
    let mut node = node();
    node["status"]["conditions"] = json!([{"type": "Ready", "status": "False", "message": "no network"}]);
    node
}

async fn waited(context: &Context) -> (Result<Outcome, Failure>, HookStatus) {
    let (case, mut record) = (Case::held(Kind::Launch), Record::default());
    let attempt = case.attempt(context).await;
    let target = case.target(&attempt);
    let outcome = await_ready(context, &target, &mut record).await;
    (outcome, record.hook)
}

fn ready() -> Outcome {
    Outcome::Ready { node: NODE.to_owned(), uncordoned: None }
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_joins_and_is_ready_goes_into_service() {
    let api = [not_joined(), not_joined(), joined(&node())];
    let context = TestContext::new(&COMPLETE, api, [hook_described(), completed("CONTINUE")]);
    let (outcome, hook) = waited(&context).await;
    assert_eq!((outcome.unwrap(), hook), (ready(), HookStatus::Completed(LifecycleResult::Continue)));
}

#[tokio::test(start_paused = true)]
async fn a_node_that_joined_before_it_is_ready_is_watched() {
    let nodes = || call("GET /api/v1/nodes").with("metadata.name");
    let mut ready_now = node();
    ready_now["metadata"]["resourceVersion"] = json!("8");
    let context = TestContext::new(
        &COMPLETE,
        [
            joined(&not_ready()),
            nodes().without("watch=true").says(200, list("Node", &[not_ready()])),
            nodes().with("watch=true").streams(&[watched("MODIFIED", &ready_now)]),
        ],
        [hook_described(), completed("CONTINUE")],
    );
    let (outcome, hook) = waited(&context).await;
    assert_eq!((outcome.unwrap(), hook), (ready(), HookStatus::Completed(LifecycleResult::Continue)));
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_never_joins_is_a_failure_and_its_hook_is_left_to_the_handler() {
    let searched = call("GET /api/v1/nodes").with("limit=100").says(200, list("Node", &[])).repeated().at_any_time();
    let context = TestContext::new(&COMPLETE, [not_joined().repeated().at_any_time(), searched], [hook_described()]);
    let (outcome, hook) = waited(&context).await;
    let failure = outcome.unwrap_err();
    assert!(matches!(failure, Failure::NotReady { readiness: Readiness::NotJoined, .. }), "{failure:?}");
    assert_eq!(hook, HookStatus::Left);
}

#[tokio::test(start_paused = true)]
async fn a_launch_hook_that_waits_no_longer_ends_the_waiting() {
    let over = call("RecordLifecycleActionHeartbeat").says(400, waits_no_more());
    let searched = call("GET /api/v1/nodes").with("limit=100").says(200, list("Node", &[])).repeated().at_any_time();
    let api = [not_joined().repeated().at_any_time(), searched];
    let context = TestContext::new(&COMPLETE, api, [hook_described(), heartbeat(), over]);
    let (case, mut record) = (Case::held(Kind::Launch), Record::default());
    let attempt = case.attempt(&context).await;
    let target = case.target(&attempt);
    let waiting = await_ready(&context, &target, &mut record);
    let outcome = attempt.hold_action_during(waiting).await.unwrap();
    assert_eq!(outcome, Outcome::Ignored(Reason::LaunchIsOver));
    assert_eq!(record.hook, HookStatus::AlreadyOver(None));
}

#[tokio::test(start_paused = true)]
async fn of_a_node_that_can_no_longer_be_looked_for_what_was_seen_last_counts_unless_a_right_is_missing() {
    for (code, error_type) in [(503, "NodeNotReady"), (403, "KubernetesDenied")] {
        let api = [
            joined(&not_ready()),
            call("GET /api/v1/nodes").with("metadata.name").says(200, list("Node", &[])),
            call("GET /api/v1/nodes").with("watch=true").streams(&[]).perhaps(),
            call(format!("GET {NODE_PATH}")).says(code, status(code, "why", "nodes")).repeated(),
        ];
        let context = TestContext::new(&COMPLETE, api, [hook_described()]);
        let (outcome, _) = waited(&context).await;
        assert_eq!(outcome.unwrap_err().error_type(), error_type);
    }
}
