use std::time::Duration;

use serde_json::{Value, json};
use spillway_core::decision::Reason;
use spillway_core::instance::InstanceState;
use spillway_core::outcome::Outcome;
use spillway_notice::{Deadline, Kind};
use tokio::time::Instant;

use crate::actions::Next;
use crate::actions::out_of_service::out_of_service;
use crate::failure::Failure;
use crate::receipt::record::Record;
use crate::test_support::api_server::{NODE, NODE_PATH, list, node, status, watched};
use crate::test_support::aws::{described, query_error};
use crate::test_support::context::{Case, TestContext};
use crate::test_support::script::{Expected, call};

async fn declared(
    state: InstanceState,
    api: impl IntoIterator<Item = Expected>,
    aws: impl IntoIterator<Item = Expected>,
) -> Result<Next, Failure> {
    let (context, mut case) = (TestContext::new(&[], api, aws), Case::of(Kind::Stopped, Deadline::Open));
    case.instance.state = state;
    let attempt = case.attempt(&context).await;
    out_of_service(&context, &case.target(&attempt), &mut Record::default()).await
}

fn missed() -> Value {
    let mut node = node();
    node["status"]["conditions"] = json!([{"type": "Ready", "status": "Unknown"}]);
    node
}

fn silent() -> Expected {
    call(format!("GET {NODE_PATH}")).says(200, missed())
}

fn still_down() -> Expected {
    described("stopped", &[])
}

fn runs_again() -> Next {
    Outcome::Ignored(Reason::RunsAgain(NODE.to_owned())).into()
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_runs_is_left_alone_without_a_request() {
    let outcome = declared(InstanceState::Up, [], []).await.unwrap();
    assert!(matches!(outcome, Next::Done(Outcome::Ignored(Reason::NotDown(_)))), "{outcome:?}");
}

#[tokio::test(start_paused = true)]
async fn a_silent_node_of_an_instance_that_is_down_gets_the_taint() {
    let tainted = call(format!("PATCH {NODE_PATH}")).with("node.kubernetes.io/out-of-service").with("NoExecute");
    let outcome = declared(InstanceState::Down, [silent(), tainted.says(200, node())], [still_down()]).await.unwrap();
    assert_eq!(outcome, Outcome::OutOfService { node: NODE.to_owned() }.into());
}

#[tokio::test(start_paused = true)]
async fn a_node_that_changed_since_it_was_looked_at_is_looked_at_again() {
    let contended = call(format!("PATCH {NODE_PATH}")).says(422, status(422, "Invalid", "nodes"));
    let tainted = call(format!("PATCH {NODE_PATH}")).says(200, node());
    let began = Instant::now();
    let outcome = declared(InstanceState::Down, [silent(), contended, silent(), tainted], [still_down(), still_down()])
        .await
        .unwrap();
    assert_eq!(outcome, Outcome::OutOfService { node: NODE.to_owned() }.into());
    assert_eq!(began.elapsed(), Duration::ZERO, "at once");
}

#[tokio::test(start_paused = true)]
async fn a_right_that_is_missing_to_taint_is_a_failure_at_once() {
    let denied = call(format!("PATCH {NODE_PATH}")).says(403, status(403, "Forbidden", "nodes"));
    let failure = declared(InstanceState::Down, [silent(), denied], [still_down()]).await.unwrap_err();
    assert_eq!(failure.error_type(), "KubernetesDenied");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_stays_ready_to_the_end_is_not_touched() {
    let nodes = || call("GET /api/v1/nodes").with("metadata.name");
    let api = [
        call(format!("GET {NODE_PATH}")).says(200, node()).repeated().at_any_time(),
        nodes().without("watch=true").says(200, list("Node", &[node()])).at_any_time(),
        nodes().with("watch=true").streams(&[]).at_any_time(),
    ];
    let outcome = declared(InstanceState::Down, api, []).await.unwrap();
    assert_eq!(outcome, Outcome::Ignored(Reason::StillReady(NODE.to_owned())).into());
}

/// Somebody has stopped and started it: its kubelet is about to run the same pods again.
#[tokio::test(start_paused = true)]
async fn an_instance_that_was_started_meanwhile_keeps_its_node_in_service() {
    let outcome = declared(InstanceState::Down, [silent()], [described("running", &[])]).await.unwrap();
    assert_eq!(outcome, runs_again());
}

/// EC2's answer may be behind.
#[tokio::test(start_paused = true)]
async fn a_node_that_has_booted_meanwhile_is_kept_in_service_whatever_ec2_says() {
    let mut booted = missed();
    booted["status"]["nodeInfo"]["bootID"] = json!("b-3");
    let api = [
        call(format!("GET {NODE_PATH}")).says(200, node()),
        call("GET /api/v1/nodes").with("metadata.name").says(200, list("Node", &[missed()])),
        call("GET /api/v1/nodes").with("watch=true").streams(&[watched("MODIFIED", &booted)]).perhaps(),
        call(format!("GET {NODE_PATH}")).says(200, booted),
    ];
    let outcome = declared(InstanceState::Down, api, []).await.unwrap();
    assert_eq!(outcome, runs_again());
}

#[tokio::test(start_paused = true)]
async fn a_node_is_kept_in_service_if_ec2_no_longer_says_that_its_instance_is_down() {
    let refused = call("DescribeInstances").says(403, query_error("UnauthorizedOperation", "no"));
    let failure = declared(InstanceState::Down, [silent()], [refused]).await.unwrap_err();
    assert!(matches!(failure, Failure::Aws(_)), "{failure:?}");
}
