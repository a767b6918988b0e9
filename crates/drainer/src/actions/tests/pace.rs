use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use spillway_core::drain::report::{DrainEnd, DrainReport, StopReason};
use spillway_core::node::pace::OtherDrains;
use spillway_core::outcome::Outcome;
use spillway_notice::{Deadline, Kind, Maintenance};
use tokio::time::Instant;

use super::{done, drained};
use crate::actions::Next;
use crate::actions::drain::drain;
use crate::actions::pace;
use crate::failure::Failure;
use crate::node::ClaimedNode;
use crate::receipt::record::Record;
use crate::test_support::api_server::{NODE, NODE_PATH, claimed, list, node, pod, status};
use crate::test_support::aws::{not_scheduled, scheduled};
use crate::test_support::context::{Case, TestContext, claim as claimed_by, client};
use crate::test_support::script::{Expected, call};

const SCHEDULE: &str = "i-0123456789abcdef0.M-1";
const SECOND: &str = "i-0123456789abcdef0.M-1.again";
/// The member of a payload that a schedule of the second name brings.
const BY_SECOND: &str = r#"\"by_second_schedule\":true"#;

/// A node of that name with a claim for maintenance, so many seconds after the invocation began.
fn claimed_at(name: &str, seconds: i64) -> Value {
    let mut node = claimed(Kind::Maintenance.as_str(), "e-1", "r-1");
    let at = Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds);
    let annotation = json!({"event": "e-1", "request": "r-1", "notice": Kind::Maintenance.as_str(), "cordoned": true,
        "maintenance": "M-1", "pace": {"group": "my-asg", "claimed": at}});
    node["metadata"]["annotations"]["spillway/claim"] = json!(annotation.to_string());
    node["metadata"]["name"] = json!(name);
    node
}

fn own() -> Value {
    claimed_at(NODE, 0)
}

/// So many other nodes, whose claims are so many seconds younger than the own one.
fn others(count: usize, younger_s: i64) -> Vec<Value> {
    (0..count).map(|number| claimed_at(&format!("n-{number}"), younger_s)).collect()
}

fn with_own(others: Vec<Value>) -> Vec<Value> {
    others.into_iter().chain([own()]).collect()
}

fn looked_at(node: &Value) -> Expected {
    call(format!("GET {NODE_PATH}")).says(200, node)
}

fn claim() -> [Expected; 2] {
    let patch = call(format!("PATCH {NODE_PATH}")).with(r#"\"pace\":{\"group\":\"my-asg\""#).says(200, node());
    [looked_at(&node()), patch]
}

/// The list of the cordoned nodes.
fn cordoned(nodes: &[Value]) -> Expected {
    call("GET /api/v1/nodes").with("spec.unschedulable").with("limit=100").says(200, list("Node", nodes))
}

/// The look before the claim.
fn look(others: &[Value]) -> [Expected; 2] {
    [looked_at(&node()), cordoned(others)]
}

fn pods(grace_s: &[u64]) -> Expected {
    let pods: Vec<_> = grace_s
        .iter()
        .map(|grace_s| {
            let mut pod = pod(&format!("web-{grace_s}"));
            pod["spec"]["terminationGracePeriodSeconds"] = json!(grace_s);
            pod
        })
        .collect();
    call("GET /api/v1/pods").without("watch=true").says(200, list("Pod", &pods))
}

/// The drain of an empty node, and the end that is written into its claim.
fn drains() -> [Expected; 4] {
    [
        pods(&[]),
        call("GET /api/v1/pods").with("watch=true").streams(&[]),
        looked_at(&own()).at_any_time().repeated(),
        call(format!("PATCH {NODE_PATH}")).with(r#"\"over\":true"#).says(200, node()).at_any_time(),
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

fn tainted() -> [Expected; 2] {
    let taint = r#"{"effect":"PreferNoSchedule","key":"spillway/planned","value":"e-1"}"#;
    [looked_at(&node()), call(format!("PATCH {NODE_PATH}")).with(taint).says(200, node())]
}

fn begins() -> [Expected; 2] {
    [not_scheduled(SCHEDULE), not_scheduled(SECOND)]
}

/// The drain for maintenance that starts in half an hour.
async fn drained_with(
    by_second_schedule: bool,
    api: impl IntoIterator<Item = Expected>,
    aws: impl IntoIterator<Item = Expected>,
) -> Result<Next, Failure> {
    let context = TestContext::new(&[], api, aws);
    let starts = Timestamp::UNIX_EPOCH + SignedDuration::from_mins(30);
    let mut case = Case::of(Kind::Maintenance, Deadline::Hard(starts));
    case.notice.maintenance = Some(Maintenance { id: "M-1".to_owned(), reboots: false, starts: None });
    case.instance.tags.insert("aws:autoscaling:groupName".to_owned(), "my-asg".to_owned());
    case.history.by_second_schedule = by_second_schedule;
    let attempt = case.attempt(&context).await;
    drain(&context, &case.target(&attempt), &mut Record::default()).await
}

/// The number of drains for which a drain waits, and in how many seconds it looks again.
fn waits(next: Next) -> (OtherDrains, i64) {
    match done(next) {
        Outcome::Postponed { gives_way_to: Some(others), begins, .. } => (others, begins.as_second()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn fifth_drain_begins_and_writes_its_end() {
    let others = others(4, -60);
    let api = look(&others).into_iter().chain(claim()).chain([cordoned(&with_own(others))]);
    let api = api.chain(node_watch()).chain(drains());
    assert_eq!(drained_with(false, api, begins()).await.unwrap(), drained(0));
}

#[tokio::test(start_paused = true)]
async fn sixth_drain_waits_without_a_claim_and_taints_its_node() {
    for (by_second, name) in [(false, SECOND), (true, SCHEDULE)] {
        let api = look(&others(5, -60)).into_iter().chain([pods(&[30])]).chain(tainted());
        let schedule = scheduled(name).with("spillway-continuation");
        let schedule = if by_second { schedule.without(BY_SECOND) } else { schedule.with(BY_SECOND) };
        let (others, begins_s) = waits(drained_with(by_second, api, [schedule]).await.unwrap());
        assert_eq!(others, OtherDrains(5), "{name}");
        assert!((180..=240).contains(&begins_s), "{begins_s}");
    }
}

#[tokio::test(start_paused = true)]
async fn surplus_claim_is_taken_back_before_an_eviction() {
    let api = look(&[]).into_iter().chain(claim());
    let api = api.chain([cordoned(&with_own(others(5, -60))), pods(&[])]).chain(given_back()).chain(tainted());
    let (others, _) = waits(drained_with(false, api, [scheduled(SECOND)]).await.unwrap());
    assert_eq!(others, OtherDrains(5));
}

#[tokio::test(start_paused = true)]
async fn drain_whose_pods_need_the_time_waits_for_nobody() {
    // Twice ten minutes and another ten are the half hour.
    let long = || pods(&[30, 600]);
    let five = others(5, -60);
    let api = look(&five).into_iter().chain([long()]).chain(claim()).chain([cordoned(&with_own(five)), long()]);
    let api = api.chain(node_watch()).chain(drains());
    assert_eq!(drained_with(false, api, begins()).await.unwrap(), drained(0));
}

#[tokio::test(start_paused = true)]
async fn earlier_claim_looks_again_until_later_ones_are_taken_back() {
    let api = look(&[]).into_iter().chain(claim()).chain([cordoned(&with_own(others(5, 60))), cordoned(&[own()])]);
    let api = api.chain(node_watch()).chain(drains());
    assert_eq!(drained_with(false, api, begins()).await.unwrap(), drained(0));
}

#[tokio::test(start_paused = true)]
async fn earlier_claim_is_taken_back_after_ten_looks() {
    let later = || cordoned(&with_own(others(5, 60)));
    let api = look(&[]).into_iter().chain(claim()).chain((0..10).map(|_| later())).chain([pods(&[])]);
    let api = api.chain(given_back()).chain(tainted());
    let (others, _) = waits(drained_with(false, api, [scheduled(SECOND)]).await.unwrap());
    assert_eq!(others, OtherDrains(5));
}

#[tokio::test(start_paused = true)]
async fn retried_drain_looks_only_after_its_claim() {
    let api =
        [looked_at(&own()), looked_at(&own()), cordoned(&[own()])].into_iter().chain(node_watch()).chain(drains());
    assert_eq!(drained_with(false, api, begins()).await.unwrap(), drained(0));
}

#[tokio::test(start_paused = true)]
async fn drain_begins_when_other_nodes_cannot_be_listed() {
    let busy = call("GET /api/v1/nodes").with("limit=100").says(503, status(503, "ServiceUnavailable", "nodes"));
    let [_, claim] = claim();
    let api = [looked_at(&node()).repeated(), busy.repeated(), claim];
    let api = api.into_iter().chain(node_watch()).chain(drains().into_iter().take(2));
    let began = Instant::now();
    assert_eq!(drained_with(false, api, begins()).await.unwrap(), drained(0));
    assert_eq!(began.elapsed().as_secs(), 10 + 10 + 5, "before and after the claim, and late pods");
}

#[tokio::test(start_paused = true)]
async fn end_of_a_drain_is_written_by_the_holder_of_its_claim() {
    let ends = [
        (DrainEnd::Empty, "e-1", true),
        (DrainEnd::Stopped(StopReason::GivenBack), "e-1", false),
        (DrainEnd::Empty, "e-2", false),
    ];
    for (end, holder, is_written) in ends {
        let writes = [looked_at(&own()), call(format!("PATCH {NODE_PATH}")).with(r#"\"over\":true"#).says(200, node())];
        let context = TestContext::new(&[], writes.into_iter().filter(|_| is_written), []);
        let starts = Timestamp::UNIX_EPOCH + SignedDuration::from_mins(30);
        let (case, now) = (Case::of(Kind::Maintenance, Deadline::Hard(starts)), Instant::now());
        let attempt = case.attempt(&context).await;
        let (pods, over_at, ended_at) = (BTreeMap::new(), now, now);
        let node = ClaimedNode { claim: claimed_by(holder), client: client(&context).await };
        let report = DrainReport { pods, window: attempt.window, blockage: None, end, over_at, ended_at, blind: None };
        pace::end(&attempt, &node, &report).await;
    }
}
