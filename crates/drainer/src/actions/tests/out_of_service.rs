use spillway_core::instance::InstanceState;

use super::*;
use crate::actions::out_of_service::out_of_service;

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

async fn of_down(api: impl IntoIterator<Item = Expected>, aws: impl IntoIterator<Item = Expected>) -> Next {
    declared(InstanceState::Down, api, aws).await.unwrap()
}

/// The node, when the control plane has missed its kubelet.
fn missed() -> Value {
    let mut node = node();
    node["status"]["conditions"] = json!([{"type": "Ready", "status": "Unknown"}]);
    node
}

fn silent() -> Expected {
    read_node(missed())
}

fn still_down() -> Expected {
    described("stopped", &[])
}

fn ignored(reason: Reason) -> Next {
    Outcome::Ignored(reason).into()
}

#[tokio::test(start_paused = true)]
async fn running_instance_costs_no_request() {
    assert_eq!(declared(InstanceState::Up, [], []).await.unwrap(), ignored(Reason::NotDown(instance_id())));
}

/// A node that changes meanwhile is read again at once.
#[tokio::test(start_paused = true)]
async fn silent_node_of_a_down_instance_gets_the_taint() {
    let contended = patch_node().says(422, status(422, "Invalid", "nodes"));
    let tainted = patch_node().with("node.kubernetes.io/out-of-service").with("NoExecute").says(200, node());
    let began = Instant::now();
    let outcome = of_down([silent(), contended, silent(), tainted], [still_down(), still_down()]).await;
    assert_eq!(outcome, Outcome::OutOfService { node: NODE.to_owned() }.into());
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn node_that_stays_ready_is_not_tainted() {
    let api = [read_node(node()).repeated(), list_node(node()), watch_node().streams(&[])].map(Expected::at_any_time);
    assert_eq!(of_down(api, []).await, ignored(Reason::StillReady(NODE.to_owned())));
}

/// The kubelet is about to run the same pods again.
#[tokio::test(start_paused = true)]
async fn node_of_a_restarted_instance_is_not_tainted() {
    assert_eq!(of_down([silent()], [described("running", &[])]).await, ignored(Reason::RunsAgain(instance_id())));
    // EC2's answer may be behind.
    let mut booted = missed();
    booted["status"]["nodeInfo"]["bootID"] = json!("b-3");
    let watched = watch_node().streams(&[watched("MODIFIED", &booted)]).perhaps();
    let api = [read_node(node()), list_node(missed()), watched, read_node(booted)];
    assert_eq!(of_down(api, []).await, ignored(Reason::RunsAgain(instance_id())));
}
