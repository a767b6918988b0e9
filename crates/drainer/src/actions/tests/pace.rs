use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use spillway_core::drain::report::{DrainEnd, DrainReport, StopReason};
use spillway_core::node::pace::Obstacle;
use spillway_core::outcome::Outcome;
use spillway_notice::continued::Earlier;
use spillway_notice::{Deadline, Kind, Maintenance};
use tokio::time::Instant;

use super::{done, drained};
use crate::actions::Next;
use crate::actions::drain::drain;
use crate::actions::pace;
use crate::failure::Failure;
use crate::node::ClaimedNode;
use crate::receipt::record::Record;
use crate::test_support::api_server::{NODE, NODE_PATH, claimed, list, no_volumes, node, status};
use crate::test_support::aws::{completed, group_described, heartbeat, hook_described, not_scheduled, scheduled};
use crate::test_support::context::{Case, TestContext, claim as claimed_by, client};
use crate::test_support::script::{Expected, call};

const SCHEDULE: &str = "i-0123456789abcdef0.M-1";
const SECOND: &str = "i-0123456789abcdef0.M-1.again";
/// What a schedule of the second name brings.
const BY_SECOND: &str = r#"\"by_second_schedule\":true"#;

/// A node of that name with a claim for maintenance, so many seconds after the invocation began.
fn claimed_at(name: &str, seconds: i64, over: bool) -> Value {
    let mut node = claimed(Kind::Maintenance.as_str(), "e-1", "r-1");
    let at = Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds);
    let annotation = json!({"event": "e-1", "request": "r-1", "notice": Kind::Maintenance.as_str(), "cordoned": true,
        "maintenance": "M-1", "pace": {"group": "my-asg", "claimed": at, "idle": over}});
    node["metadata"]["annotations"]["spillway/claim"] = json!(annotation.to_string());
    node["metadata"]["name"] = json!(name);
    node
}

fn looked_at(node: &Value) -> Expected {
    call(format!("GET {NODE_PATH}")).says(200, node)
}

fn own() -> Value {
    claimed_at(NODE, 0, false)
}

fn claim() -> Expected {
    call(format!("PATCH {NODE_PATH}")).with(r#"\"pace\":{\"group\":\"my-asg\""#).says(200, node())
}

fn nodes(nodes: &[Value]) -> Expected {
    call("GET /api/v1/nodes").with("limit=100").says(200, list("Node", nodes))
}

/// The drain of an empty node, of which other drains are told at its end.
fn drains() -> [Expected; 4] {
    [
        call("GET /api/v1/pods").without("watch=true").says(200, list("Pod", &[])),
        call("GET /api/v1/pods").with("watch=true").streams(&[]),
        looked_at(&own()).at_any_time().repeated(),
        call(format!("PATCH {NODE_PATH}")).with(r#"\"idle\":true"#).says(200, node()).at_any_time(),
    ]
}

/// The node is watched while it is drained: it might be given back.
fn node_watch() -> [Expected; 2] {
    let nodes = || call("GET /api/v1/nodes").with("metadata.name");
    let listed = nodes().without("watch=true").says(200, list("Node", &[own()]));
    [listed, nodes().with("watch=true").streams(&[])].map(|looked| looked.at_any_time().repeated().perhaps())
}

fn given_back() -> [Expected; 2] {
    [
        looked_at(&own()),
        call(format!("PATCH {NODE_PATH}")).with(r#""op":"remove","path":"/spec/unschedulable""#).says(200, node()),
    ]
}

fn begins() -> [Expected; 2] {
    [not_scheduled(SCHEDULE), not_scheduled(SECOND)]
}

/// The drain for maintenance that starts after so many seconds, of at most one node at once.
async fn drained_with(
    starts_s: i64,
    by_second_schedule: bool,
    api: impl IntoIterator<Item = Expected>,
    aws: impl IntoIterator<Item = Expected>,
) -> Result<Next, Failure> {
    let context = TestContext::new(&[("SPILLWAY_MAINTENANCE_AT_ONCE", "1")], api, aws);
    let starts = Timestamp::UNIX_EPOCH + SignedDuration::from_secs(starts_s);
    let mut case = Case::of(Kind::Maintenance, Deadline::Hard(starts));
    case.notice.maintenance = Some(Maintenance { id: "M-1".to_owned(), reboots: false, starts: None });
    case.instance.tags.insert("aws:autoscaling:groupName".to_owned(), "my-asg".to_owned());
    case.history.by_second_schedule = by_second_schedule;
    let attempt = case.attempt(&context).await;
    drain(&context, &case.target(&attempt), &mut Record::default()).await
}

fn gave_way(next: Next) -> Option<Obstacle> {
    match done(next) {
        Outcome::Postponed { gives_way_to, .. } => gives_way_to,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_drain_that_sees_no_others_goes_on_and_says_at_its_end_that_it_is_over() {
    let others = [own(), claimed_at("n-2", -60, true)];
    let api = [claim(), nodes(&others)].into_iter().chain(node_watch()).chain(drains());
    assert_eq!(drained_with(1800, false, api, begins()).await.unwrap(), drained(0));
}

#[tokio::test(start_paused = true)]
async fn a_drain_that_claimed_after_another_gives_its_node_back_and_tries_again_by_the_other_name() {
    for (by_second, name) in [(false, SECOND), (true, SCHEDULE)] {
        let others = [own(), claimed_at("n-2", -60, false)];
        let api = [claim(), nodes(&others)].into_iter().chain(given_back());
        let schedule = scheduled(name).with("spillway-continuation");
        let schedule = if by_second { schedule.without(BY_SECOND) } else { schedule.with(BY_SECOND) };
        let next = drained_with(1800, by_second, api, [schedule]).await.unwrap();
        assert_eq!(gave_way(next), Some(Obstacle::Drains { others: 1 }), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_drain_for_maintenance_that_is_over_and_tried_again_looks_at_the_others_and_tells_them_nothing() {
    let idle = claimed_at(NODE, 0, true);
    let taken = call(format!("PATCH {NODE_PATH}")).says(422, status(422, "Invalid", "nodes"));
    let others = nodes(&[idle.clone(), claimed_at("n-2", -60, false)]);
    let api = [taken, looked_at(&idle), others].into_iter().chain(given_back());
    let next = drained_with(1800, false, api, [scheduled(SECOND)]).await.unwrap();
    assert_eq!(gave_way(next), Some(Obstacle::Drains { others: 1 }));
}

#[tokio::test(start_paused = true)]
async fn a_drain_that_claimed_before_another_waits_until_that_one_has_given_way() {
    let both = nodes(&[own(), claimed_at("n-2", 60, false)]);
    let api = [claim(), both, nodes(&[own()])].into_iter().chain(node_watch()).chain(drains());
    assert_eq!(drained_with(1800, false, api, begins()).await.unwrap(), drained(0));
}

#[tokio::test(start_paused = true)]
async fn a_drain_whose_followers_do_not_give_way_gives_way_itself_after_ten_looks() {
    let both = || nodes(&[own(), claimed_at("n-2", 60, false)]);
    let api = [claim()].into_iter().chain((0..10).map(|_| both())).chain(given_back());
    let next = drained_with(1800, false, api, [scheduled(SECOND)]).await.unwrap();
    assert_eq!(gave_way(next), Some(Obstacle::Drains { others: 1 }));
}

#[tokio::test(start_paused = true)]
async fn a_drain_whose_other_nodes_cannot_be_listed_goes_on_after_ten_seconds() {
    let busy = call("GET /api/v1/nodes").with("limit=100").says(503, status(503, "ServiceUnavailable", "nodes"));
    let api = [claim(), busy.repeated()].into_iter().chain(node_watch()).chain(drains());
    let began = Instant::now();
    assert_eq!(drained_with(1800, false, api, begins()).await.unwrap(), drained(0));
    assert_eq!(began.elapsed().as_secs(), 10 + 5, "late pods are waited for too");
}

#[tokio::test(start_paused = true)]
async fn in_the_last_quarter_of_the_lead_nobody_is_looked_at() {
    let claim = call(format!("PATCH {NODE_PATH}")).without(r#"\"pace"#).says(200, node());
    let api = [claim].into_iter().chain(node_watch()).chain(drains());
    assert_eq!(drained_with(900, false, api, begins()).await.unwrap(), drained(0));
}

/// The drain for a hook of at most one node at once, that goes on after an invocation that left so many pods, if it does.
async fn drained_for_hook(left: Option<usize>, api: impl IntoIterator<Item = Expected>) -> Result<Next, Failure> {
    let settings = [("SPILLWAY_HOOKS_AT_ONCE", "1")];
    let aws = [hook_described(), group_described(false), heartbeat().repeated().perhaps(), completed("CONTINUE")];
    let context = TestContext::new(&settings, api.into_iter().chain(node_watch()).chain(drains()).chain([no_volumes()]), aws);
    let mut case = Case::held(Kind::Terminate);
    case.instance.tags.insert("aws:autoscaling:groupName".to_owned(), "my-asg".to_owned());
    case.history.earlier = left.into_iter().map(earlier).collect();
    let attempt = case.attempt(&context).await;
    drain(&context, &case.target(&attempt), &mut Record::default()).await
}

fn earlier(left: usize) -> Earlier {
    let pods = [("remaining".to_owned(), left)].into_iter().filter(|(_, pods)| *pods > 0).collect();
    let (from, to) = (Timestamp::UNIX_EPOCH, Timestamp::UNIX_EPOCH);
    Earlier { request_id: "r-0".to_owned(), from, to, node: Some(NODE.to_owned()), pods }
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_has_only_waited_so_far_says_that_it_does_no_longer_and_looks_whether_it_is_its_turn() {
    let waits = claimed_at(NODE, 0, true);
    let goes_on = call(format!("PATCH {NODE_PATH}")).says(200, node());
    let api = [looked_at(&waits), looked_at(&waits), goes_on, nodes(&[own()])];
    assert_eq!(drained_for_hook(Some(0), api).await.unwrap(), drained(0));
}

#[tokio::test(start_paused = true)]
async fn a_hook_whose_drain_has_begun_looks_at_no_others() {
    assert_eq!(drained_for_hook(Some(1), [looked_at(&own())]).await.unwrap(), drained(0));
}

#[tokio::test(start_paused = true)]
async fn a_hook_looks_twice_a_minute_whether_it_is_its_turn() {
    let (waits, its_turn) = (|| nodes(&[own(), claimed_at("n-2", -60, false)]), || nodes(&[own()]));
    let idle = call(format!("PATCH {NODE_PATH}")).with(r#"\"idle\":true"#).says(200, node()).at_any_time();
    // It looks, says that it waits, and looks every 15 to 30 s from then on.
    let api = [claim(), waits(), idle].into_iter().chain((0..10).map(|_| waits())).chain([its_turn(), its_turn()]);
    let began = Instant::now();
    assert_eq!(drained_for_hook(None, api).await.unwrap(), drained(0));
    let took = began.elapsed();
    assert!((10 * 15..10 * 30 + 60).contains(&took.as_secs()), "ten looks took {took:?}");
}

#[tokio::test(start_paused = true)]
async fn others_are_told_that_a_drain_is_over_by_whoever_holds_its_claim_while_its_node_is_out_of_use() {
    let ends = [
        (DrainEnd::Stopped(StopReason::HookIsOver), "e-1", true),
        (DrainEnd::Stopped(StopReason::GivenBack), "e-1", false),
        (DrainEnd::Empty, "e-2", false),
    ];
    for (end, holder, is_told) in ends {
        let tells = [looked_at(&own()), call(format!("PATCH {NODE_PATH}")).with(r#"\"idle\":true"#).says(200, node())];
        let api = tells.into_iter().filter(|_| is_told);
        let context = TestContext::new(&[("SPILLWAY_HOOKS_AT_ONCE", "1")], api, [hook_described()]);
        let (case, now) = (Case::held(Kind::Terminate), Instant::now());
        let attempt = case.attempt(&context).await;
        let (pods, over_at, ended_at) = (BTreeMap::new(), now, now);
        let node = ClaimedNode { claim: claimed_by(holder), client: client(&context).await };
        let report = DrainReport { pods, blockage: None, end, over_at, ended_at, blind: None };
        pace::end(&attempt, &node, &report).await;
    }
}
