//! How a drain ends that does not end drained.

use std::time::Duration;

use jiff::SignedDuration;
use serde_json::json;
use spillway_core::drain::deadline::Termination;
use spillway_core::invocation::Invocation;
use spillway_core::outcome::DrainOutcome;
use spillway_notice::continued::Earlier;
use spillway_notice::{Deadline, Kind};

use super::{claim, drained, eviction, gone, leaving, pods, watch};
use crate::actions::drain::drain;
use crate::failure::Failure;
use crate::receipt::record::{HookStatus, Record};
use crate::receipt::{Counts, Fate, PodRecord};
use crate::test_support::api_server::{NODE, NODE_PATH, claimed, list, no_volumes, node, pod};
use crate::test_support::aws::{
    completed, group_described, heartbeat, hook_described, query_error, scheduled, waits_no_more,
};
use crate::test_support::context::{Case, TestContext};
use crate::test_support::script::{Expected, call};

#[tokio::test(start_paused = true)]
async fn after_a_spot_notice_a_pod_that_has_been_stuck_for_days_is_unconfirmed() {
    let mut stuck = pod("stuck");
    stuck["metadata"]["deletionTimestamp"] = json!("1969-12-29T00:00:00Z");
    stuck["metadata"]["deletionGracePeriodSeconds"] = json!(30);
    let listed = call("GET /api/v1/pods").without("watch=true").says(200, list("Pod", &[stuck]));
    let looked_at = call("GET /api/v1/nodes").says(200, list("Node", &[node()])).repeated().at_any_time();
    let context = TestContext::new(&[], [claim(), listed, watch().streams(&[]), looked_at], []);
    let (case, mut record) = (Case::spot(), Record::default());
    let attempt = case.attempt(&context).await;
    let outcome = drain(&context, &case.target(&attempt), &mut record).await.unwrap();
    let counts = Counts { moved: 0, lost: 0, unconfirmed: 1 };
    assert_eq!(outcome, DrainOutcome::Stuck { node: NODE.to_owned(), counts }.into());
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_is_over_before_the_pods_are_listed_ends_the_drain() {
    let over = call("RecordLifecycleActionHeartbeat").says(400, waits_no_more());
    let never = call("GET /api/v1/pods").repeated();
    let context =
        TestContext::new(&[], [claim(), never], [hook_described(), group_described(false), heartbeat(), over]);
    let (case, mut record) = (Case::held(Kind::Terminate), Record::default());
    let attempt = case.attempt(&context).await;
    let target = case.target(&attempt);
    let draining = Box::pin(drain(&context, &target, &mut record));
    let outcome = attempt.hold_action_during(draining).await.unwrap();
    assert_eq!(outcome, DrainOutcome::HookOver { node: NODE.to_owned(), lost: None }.into());
    assert_eq!(record.hook, HookStatus::AlreadyOver(None));
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_is_over_in_mid_drain_is_told_with_what_was_left() {
    let over = call("RecordLifecycleActionHeartbeat").says(400, waits_no_more());
    let api = [claim(), pods(&["a", "b"]), eviction("a"), eviction("b"), watch().streams(&[gone("a")])];
    let looked_at = call("GET /api/v1/nodes").says(200, list("Node", &[node()])).repeated().perhaps();
    let aws = [hook_described(), group_described(false), heartbeat(), over];
    let context = TestContext::new(&[], api.into_iter().chain([looked_at]), aws);
    let case = Case::held(Kind::Terminate);
    let attempt = case.attempt(&context).await;
    let target = case.target(&attempt);
    let mut record = Record::default();
    let outcome = attempt.hold_action_during(Box::pin(drain(&context, &target, &mut record))).await.unwrap();
    assert_eq!(outcome, DrainOutcome::HookOver { node: NODE.to_owned(), lost: Some(1) }.into());
}

#[tokio::test(start_paused = true)]
async fn pods_that_are_still_there_when_the_time_is_up_are_a_failure() {
    // A pod that is overdue has the node watched.
    let looked_at = call("GET /api/v1/nodes").says(200, list("Node", &[node()])).repeated().at_any_time();
    let watched = watch().streams(&[gone("b"), leaving("a")]);
    let context =
        TestContext::new(&[], [claim(), pods(&["a", "b"]), eviction("a"), eviction("b"), watched, looked_at], []);
    let case = Case::spot();
    let attempt = case.attempt(&context).await;
    let failure = drain(&context, &case.target(&attempt), &mut Record::default()).await.unwrap_err();
    assert!(matches!(failure, Failure::PodsLost { lost: 1, all: 2, .. }), "{failure:?}");
}

#[tokio::test(start_paused = true)]
async fn pods_that_are_left_when_only_the_invocation_is_over_hold_the_hook_in_the_next_one() {
    let looked_at = call("GET /api/v1/nodes").says(200, list("Node", &[node()])).repeated().at_any_time();
    let api = [claim(), pods(&["a"]), eviction("a"), watch().streams(&[leaving("a")]), looked_at];
    let (context, mut case) =
        (TestContext::new(&[], api, [hook_described(), group_described(false)]), Case::held(Kind::Terminate));
    let clock = case.invocation.clock;
    case.invocation = Invocation::until(clock.now() + SignedDuration::from_mins(1), "r-1", clock);
    let (attempt, mut record) = (case.attempt(&context).await, Record::default());
    let failure = drain(&context, &case.target(&attempt), &mut record).await.unwrap_err();
    assert!(matches!(failure, Failure::PodsLost { lost: 1, all: 1, .. }), "{failure:?}");
    assert_eq!(record.hook, HookStatus::Left);
}

#[tokio::test(start_paused = true)]
async fn the_instance_of_a_group_that_keeps_it_stays_with_the_pods_that_cannot_leave() {
    let looked_at = call("GET /api/v1/nodes").says(200, list("Node", &[node()])).repeated().at_any_time();
    let stay = ["a", "b", "c", "d", "e"];
    let events: Vec<_> = stay.iter().map(|name| leaving(name)).chain([gone("f")]).collect();
    let listed = [&stay[..], &["f"]].concat();
    let evictions = listed.iter().map(|name| eviction(name));
    let api = [claim(), pods(&listed)].into_iter().chain(evictions).chain([watch().streams(&events), looked_at]);
    let context = TestContext::new(
        &[("SPILLWAY_HOOK_MAX_WAIT_S", "60")],
        api,
        [hook_described(), group_described(true), completed("ABANDON")],
    );
    let (case, mut record) = (Case::held(Kind::Terminate), Record::default());
    let attempt = case.attempt(&context).await;
    let failure = drain(&context, &case.target(&attempt), &mut record).await.unwrap_err();
    assert_eq!(failure.error_type(), "InstanceKept");
    assert_eq!(record.window.unwrap().instance_goes, Termination::Unknown, "nothing is forced");
    insta::assert_snapshot!(failure.text());
}

/// What Auto Scaling says of the group while it is busy.
fn group_throttled() -> Expected {
    call("DescribeAutoScalingGroups").says(400, query_error("Throttling", "Rate exceeded"))
}

/// Drains a pod that does not leave within its hook's minute. The hook gets `ABANDON`, and a deletion would fail the test.
async fn keeps_its_instance(was_kept: bool, group: impl IntoIterator<Item = Expected>) {
    let looked_at = call("GET /api/v1/nodes").says(200, list("Node", &[node()])).repeated().at_any_time();
    let api = [claim(), pods(&["a"]), eviction("a"), watch().streams(&[leaving("a")]), looked_at];
    let aws = [hook_described()].into_iter().chain(group).chain([completed("ABANDON")]);
    let context = TestContext::new(&[("SPILLWAY_HOOK_MAX_WAIT_S", "60")], api, aws);
    let (mut case, mut record) = (Case::held(Kind::Terminate), Record::default());
    case.history.is_kept = was_kept;
    let attempt = case.attempt(&context).await;
    let failure = drain(&context, &case.target(&attempt), &mut record).await.unwrap_err();
    assert_eq!(failure.error_type(), "InstanceKept");
    assert_eq!(record.window.unwrap().instance_goes, Termination::Unknown);
}

#[tokio::test(start_paused = true)]
async fn retention_is_asked_for_until_pods_may_be_forced() {
    keeps_its_instance(false, (0..4).map(|_| group_throttled()).chain([group_described(true)])).await;
}

#[tokio::test(start_paused = true)]
async fn unknown_retention_after_kept_stays_kept() {
    keeps_its_instance(true, [group_throttled().repeated().at_any_time()]).await;
}

/// What an earlier invocation left: the pods of those names.
fn left_by_an_earlier_invocation(case: &mut Case, names: &[&str]) {
    let grace = Duration::from_secs(30);
    let left = |name: &&str| PodRecord::of(format!("shop/{name}"), format!("uid-{name}"), Fate::Remaining, grace);
    case.history.remaining = names.iter().map(left).collect();
    let at = case.notice.time;
    let node = Some(NODE.to_owned());
    case.history.earlier = vec![Earlier { request_id: "r-0".to_owned(), from: at, to: at, node, pods: [].into() }];
}

#[tokio::test(start_paused = true)]
async fn pods_that_left_between_two_invocations_count() {
    let ours = claimed(Kind::Terminate.as_str(), "e-1", "r-0");
    let taken_over = [call(format!("GET {NODE_PATH}")).says(200, ours), claim()];
    let api = taken_over.into_iter().chain([pods(&["a"]), eviction("a"), watch().streams(&[gone("a")]), no_volumes()]);
    let aws = [hook_described(), group_described(false), completed("CONTINUE")];
    let (context, mut case) = (TestContext::new(&[], api, aws), Case::held(Kind::Terminate));
    left_by_an_earlier_invocation(&mut case, &["a", "b", "c"]);
    let (attempt, mut record) = (case.attempt(&context).await, Record::default());
    let outcome = drain(&context, &case.target(&attempt), &mut record).await.unwrap();
    assert_eq!(outcome, drained(3));
    let told: Vec<_> = record.pods.iter().map(|pod| (pod.pod.as_str(), pod.fate)).collect();
    assert_eq!(told, [("shop/a", Fate::Clean), ("shop/b", Fate::Clean), ("shop/c", Fate::Clean)]);
}

#[tokio::test(start_paused = true)]
async fn pod_on_the_node_of_a_hook_that_is_over_is_lost() {
    let over = call("RecordLifecycleActionHeartbeat").says(400, waits_no_more());
    let api = [call(format!("GET {NODE_PATH}")).perhaps(), pods(&["a"])];
    let aws = [hook_described(), group_described(false).perhaps(), over];
    let (context, mut case) = (TestContext::new(&[], api, aws), Case::held(Kind::Terminate));
    left_by_an_earlier_invocation(&mut case, &["a", "b"]);
    let (attempt, mut record) = (case.attempt(&context).await, Record::default());
    let target = case.target(&attempt);
    let outcome = attempt.hold_action_during(Box::pin(drain(&context, &target, &mut record))).await.unwrap();
    assert_eq!(outcome, DrainOutcome::HookOver { node: NODE.to_owned(), lost: Some(1) }.into());
    let told: Vec<_> = record.pods.iter().map(|pod| (pod.pod.as_str(), pod.fate)).collect();
    assert_eq!(told, [("shop/a", Fate::Lost), ("shop/b", Fate::Unconfirmed)]);
    assert_eq!(record.node.as_deref(), Some(NODE));
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_given_back_in_mid_drain_is_drained_no_further() {
    let watch_nodes = || call("GET /api/v1/nodes").with("metadata.name");
    let (ours, given_back) = (claimed(Kind::Rebalance.as_str(), "e-1", "r-1"), node());
    let context = TestContext::new(
        &[],
        [
            claim(),
            pods(&["a"]),
            eviction("a").at_any_time(),
            watch().streams(&[]).at_any_time(),
            watch_nodes().without("watch=true").says(200, list("Node", &[ours])).at_any_time(),
            watch_nodes().with("watch=true").lost().at_any_time(),
            watch_nodes().without("watch=true").says(200, list("Node", &[given_back])).at_any_time(),
            watch_nodes().with("watch=true").perhaps(),
        ],
        [scheduled(&format!("{NODE}.rebalance-recommendation.0"))],
    );
    let case = Case::of(Kind::Rebalance, Deadline::Open);
    let attempt = case.attempt(&context).await;
    let outcome = drain(&context, &case.target(&attempt), &mut Record::default()).await.unwrap();
    assert_eq!(outcome, DrainOutcome::GivenBack { node: NODE.to_owned() }.into());
}
