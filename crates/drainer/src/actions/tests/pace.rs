use spillway_core::node::pace::OtherDrains;
use spillway_notice::Maintenance;

use super::*;

const SCHEDULE: &str = "i-0123456789abcdef0.M-1";
const SECOND: &str = "i-0123456789abcdef0.M-1.again";

/// Node with a claim for maintenance, so many seconds after the invocation began.
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

/// Five other nodes with claims that are so many seconds younger than the own claim.
fn five(younger_s: i64) -> Vec<Value> {
    (0..5).map(|number| claimed_at(&format!("n-{number}"), younger_s)).collect()
}

fn with_own(others: &[Value]) -> Vec<Value> {
    others.iter().cloned().chain([own()]).collect()
}

fn claim() -> [Expected; 2] {
    [read_node(node()), patch_node().with(r#"\"pace\":{\"group\":\"my-asg\""#).says(200, node())]
}

/// List of the cordoned nodes.
fn cordoned(nodes: &[Value]) -> Expected {
    call("GET /api/v1/nodes").with("spec.unschedulable").with("limit=100").says(200, list("Node", nodes))
}

/// Reads before the claim.
fn before_claim(others: &[Value]) -> [Expected; 2] {
    [read_node(node()), cordoned(others)]
}

fn pods(grace_s: &[u64]) -> Expected {
    let pod = |grace_s: &u64| {
        let mut pod = pod(&format!("web-{grace_s}"));
        pod["spec"]["terminationGracePeriodSeconds"] = json!(grace_s);
        pod
    };
    list_pods(&grace_s.iter().map(pod).collect::<Vec<_>>())
}

fn marked_over() -> [Expected; 2] {
    [read_node(own()), patch_node().with(r#"\"over\":true"#).says(200, node())]
}

/// Drain of an empty node. The node is watched, because it might be given back.
fn drains() -> impl Iterator<Item = Expected> {
    let watch = [list_node(own()), watch_node().streams(&[])].map(|call| call.at_any_time().repeated().perhaps());
    watch.into_iter().chain([pods(&[]), watch_pods(&[])])
}

fn drains_and_marks_over() -> impl Iterator<Item = Expected> {
    let [read, marked] = marked_over();
    drains().chain([read.at_any_time().repeated(), marked.at_any_time()])
}

fn given_back_and_tainted() -> [Expected; 4] {
    let taint = r#"{"effect":"PreferNoSchedule","key":"spillway/planned","value":"e-1"}"#;
    [read_node(own()), uncordon_node(), read_node(node()), patch_node().with(taint).says(200, node())]
}

/// Maintenance that starts in half an hour.
fn planned() -> Case {
    let starts = Timestamp::UNIX_EPOCH + SignedDuration::from_mins(30);
    let mut case = Case::of(Kind::Maintenance, Deadline::Hard(starts));
    case.notice.maintenance = Some(Maintenance { id: "M-1".to_owned(), reboots: false, starts: None });
    case.instance.tags.insert("aws:autoscaling:groupName".to_owned(), "my-asg".to_owned());
    case
}

/// Runs a drain that is not postponed. The schedules of the maintenance are deleted.
async fn begins(api: impl IntoIterator<Item = Expected>) {
    let context = TestContext::new(&[], api, [not_scheduled(SCHEDULE), not_scheduled(SECOND)]);
    assert_eq!(drain_case(&context, &planned()).await.0.unwrap(), drained(0));
}

/// Runs a drain that waits for five others. Returns the second of its next attempt.
async fn waits(by_second_schedule: bool, api: impl IntoIterator<Item = Expected>, schedule: Expected) -> i64 {
    let mut case = planned();
    case.history.by_second_schedule = by_second_schedule;
    match done(drain_case(&TestContext::new(&[], api, [schedule]), &case).await.0.unwrap()) {
        Outcome::Postponed { gives_way_to: Some(OtherDrains(5)), begins, .. } => begins.as_second(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn fifth_drain_begins_and_writes_its_end() {
    let others = &five(-60)[1..];
    let api = before_claim(others).into_iter().chain(claim()).chain([cordoned(&with_own(others))]);
    begins(api.chain(drains_and_marks_over())).await;
}

#[tokio::test(start_paused = true)]
async fn sixth_drain_waits_without_a_claim_and_taints_its_node() {
    let by_second = r#"\"by_second_schedule\":true"#;
    for (was_second, schedule) in
        [(false, scheduled(SECOND).with(by_second)), (true, scheduled(SCHEDULE).without(by_second))]
    {
        let [_, _, read, taint] = given_back_and_tainted();
        let api = before_claim(&five(-60)).into_iter().chain([pods(&[30]), read, taint]);
        let begins_s = waits(was_second, api, schedule.with("spillway-continuation")).await;
        assert!((180..=240).contains(&begins_s), "{begins_s}");
    }
}

#[tokio::test(start_paused = true)]
async fn surplus_claim_is_given_back_before_an_eviction() {
    let api = before_claim(&[]).into_iter().chain(claim()).chain([cordoned(&with_own(&five(-60))), pods(&[])]);
    waits(false, api.chain(given_back_and_tainted()), scheduled(SECOND)).await;
}

#[tokio::test(start_paused = true)]
async fn drain_with_too_long_a_grace_to_wait_begins() {
    // Twice ten minutes and another ten are the half hour.
    let long = || pods(&[30, 600]);
    let api = before_claim(&five(-60)).into_iter().chain([long()]).chain(claim());
    begins(api.chain([cordoned(&with_own(&five(-60))), long()]).chain(drains_and_marks_over())).await;
}

#[tokio::test(start_paused = true)]
async fn earlier_claim_waits_until_later_ones_are_given_back() {
    let later = || cordoned(&with_own(&five(60)));
    let claimed = || before_claim(&[]).into_iter().chain(claim());
    begins(claimed().chain([later(), cordoned(&[own()])]).chain(drains_and_marks_over())).await;
    // Ten counts are the most.
    let api = claimed().chain((0..10).map(|_| later())).chain([pods(&[])]).chain(given_back_and_tainted());
    waits(false, api, scheduled(SECOND)).await;
}

#[tokio::test(start_paused = true)]
async fn retried_drain_counts_only_after_its_claim() {
    let api = [read_node(own()), read_node(own()), cordoned(&[own()])];
    begins(api.into_iter().chain(drains_and_marks_over())).await;
}

#[tokio::test(start_paused = true)]
async fn drain_begins_when_other_nodes_cannot_be_listed() {
    let busy = call("GET /api/v1/nodes").with("limit=100").says(503, status(503, "ServiceUnavailable", "nodes"));
    let [_, claim] = claim();
    let began = Instant::now();
    begins([read_node(node()).repeated(), busy.repeated(), claim].into_iter().chain(drains())).await;
    assert_eq!(began.elapsed().as_secs(), 10 + 10 + 5, "before and after the claim, and late pods");
}
