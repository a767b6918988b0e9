use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use spillway_core::drain::deadline::Termination;
use spillway_core::invocation::Invocation;
use spillway_core::node::claimant::How;
use spillway_core::outcome::{DrainOutcome, Outcome};
use spillway_notice::continued::{OwnersPods, PodsPutBack};
use spillway_notice::queued::Queued;
use spillway_notice::{Deadline, Kind};
use spillway_settings::LifecycleResult;
use tokio::time::Instant;

use super::drained;
use crate::actions::Next;
use crate::actions::drain::drain;
use crate::continuation::Turn;
use crate::failure::Failure;
use crate::receipt::record::{HookStatus, Record};
use crate::receipt::{AfterDrain, BeginNotified, Counts, StepName};
use crate::test_support::api_server::{NODE, NODE_PATH, claimed, list, no_volumes, node, pod, status, watched};
use crate::test_support::aws::{
    completed, group_described, heartbeat, hook_described, put_event, scheduled, waits_no_more,
};
use crate::test_support::context::{Case, TestContext};
use crate::test_support::script::{Expected, call};

fn claim() -> Expected {
    call(format!("PATCH {NODE_PATH}")).says(200, node())
}

fn pods(names: &[&str]) -> Expected {
    let pods: Vec<_> = names.iter().map(|name| pod(name)).collect();
    call("GET /api/v1/pods").with("spec.nodeName").without("watch=true").says(200, list("Pod", &pods))
}

fn eviction(name: &str) -> Expected {
    let evicted = call(format!("POST /api/v1/namespaces/shop/pods/{name}/eviction")).with(format!("uid-{name}"));
    evicted.without("dryRun").says(201, json!({"apiVersion": "v1", "kind": "Status", "status": "Success", "code": 201}))
}

/// The pod's budget does not allow its eviction.
fn blocked(name: &str) -> Expected {
    let why =
        json!({"reason": "DisruptionBudget", "message": "The disruption budget web needs 1 healthy pods and has 1"});
    let no = json!({"kind": "Status", "apiVersion": "v1", "code": 429, "details": {"causes": [why]}});
    eviction(name).says(429, no).repeated()
}

fn no_right_to_budgets() -> Expected {
    let budgets = call("GET /apis/policy/v1/namespaces/shop/poddisruptionbudgets");
    budgets.says(403, status(403, "Forbidden", "poddisruptionbudgets")).at_any_time()
}

fn watch() -> Expected {
    call("GET /api/v1/pods").with("watch=true").with("resourceVersion=7")
}

fn gone(name: &str) -> serde_json::Value {
    let mut pod = pod(name);
    pod["metadata"]["resourceVersion"] = json!("9");
    watched("DELETED", &pod)
}

fn leaving(name: &str) -> serde_json::Value {
    let mut leaving = pod(name);
    leaving["metadata"]["resourceVersion"] = json!("9");
    leaving["metadata"]["deletionTimestamp"] = json!("1970-01-01T00:00:30Z");
    leaving["metadata"]["deletionGracePeriodSeconds"] = json!(30);
    watched("MODIFIED", &leaving)
}

#[tokio::test(start_paused = true)]
async fn an_empty_node_is_drained_by_claim_and_list_and_watched_for_5_s() {
    let api = [claim(), pods(&[]), watch().streams(&[]), no_volumes()];
    let context = TestContext::new(&[], api, [hook_described(), group_described(false), completed("CONTINUE")]);
    let (case, mut record) = (Case::held(Kind::Terminate), Record::default());
    let attempt = case.attempt(&context).await;
    let outcome = drain(&context, &case.target(&attempt), &mut record).await.unwrap();
    assert_eq!(outcome, drained(0));
    let waited = AfterDrain { late_pods_ms: 5_000, ..AfterDrain::default() };
    assert_eq!(record.after_drain, Some(waited));
    let at = |step| record.steps.iter().find(|(done, _)| *done == step).unwrap().1.as_second();
    assert_eq!(record.begin, BeginNotified::Untold, "nothing had to leave");
    assert_eq!([StepName::Drained, StepName::Completed].map(at), [0, 5], "it was empty long before");
}

#[tokio::test(start_paused = true)]
async fn a_notice_whose_deadline_was_over_when_it_came_clamps_nothing_and_waits_for_minutes() {
    let context = TestContext::new(&[], [], []);
    for (late_s, is_over) in [(-1, false), (0, true), (180, true)] {
        let mut case = Case::spot();
        let goes = Timestamp::UNIX_EPOCH - SignedDuration::from_secs(late_s);
        case.notice.deadline = Deadline::Hard(goes);
        let attempt = case.attempt(&context).await;
        let (window, clock) = (attempt.window(), case.invocation.clock);
        let over = Termination::Soon { respected_until: clock.instant(goes) };
        assert_eq!(window.instance_goes == over, is_over, "{late_s} s late: {window:?}");
        let waits_s = if is_over { 600 - late_s } else { 10 };
        assert_eq!(clock.at(window.end).as_second(), waits_s, "{late_s} s late");
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_came_back_twice_before_is_left_in_the_next_invocation_too_and_continued() {
    let mut back = pod("back");
    back["metadata"]["creationTimestamp"] = json!("1970-01-01T00:00:00Z");
    let listed = call("GET /api/v1/pods").without("watch=true").says(200, list("Pod", &[back]));
    let context = TestContext::new(&[], [claim(), listed, watch().streams(&[])], []);
    let (mut case, mut record) = (Case::spot(), Record::default());
    let pods = OwnersPods { left: 1, once: vec!["uid-once".to_owned()], again: vec!["uid-back".to_owned()] };
    let owners = [("rs".to_owned(), pods)].into();
    case.history.put_back = Some(PodsPutBack { since: Timestamp::UNIX_EPOCH, owners });
    let attempt = case.attempt(&context).await;
    let outcome = drain(&context, &case.target(&attempt), &mut record).await.unwrap();
    assert_eq!(outcome, drained(0));
    assert_eq!(record.put_back, case.history.put_back);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_was_bound_just_before_the_cordon_was_seen_is_evicted_before_the_hook_is_completed() {
    let mut late = pod("late");
    late["metadata"]["resourceVersion"] = json!("9");
    let context = TestContext::new(
        &[],
        [
            claim(),
            pods(&[]),
            watch().streams(&[watched("ADDED", &late)]),
            call(format!("GET {NODE_PATH}")).says(200, node()),
            eviction("late").says(404, status(404, "NotFound", "pods")),
            no_volumes(),
        ],
        [hook_described(), group_described(false), completed("CONTINUE")],
    );
    let (case, mut record) = (Case::held(Kind::Terminate), Record::default());
    let attempt = case.attempt(&context).await;
    let outcome = drain(&context, &case.target(&attempt), &mut record).await.unwrap();
    assert_eq!(outcome, drained(1));
}

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
async fn a_drain_claims_lists_evicts_watches_and_lets_the_instance_go() {
    let context = TestContext::new(
        &[],
        [
            claim(),
            pods(&["a", "b"]),
            eviction("a"),
            eviction("b"),
            watch().streams(&[gone("a"), gone("b")]),
            no_volumes(),
        ],
        [hook_described(), group_described(false), heartbeat(), completed("CONTINUE")],
    );
    let (case, mut record) = (Case::held(Kind::Terminate), Record::default());
    let attempt = case.attempt(&context).await;
    let target = case.target(&attempt);
    let draining = drain(&context, &target, &mut record);
    let outcome = attempt.hold_action_during(draining).await.unwrap();
    assert_eq!(outcome, drained(2));
    assert_eq!(record.hook, HookStatus::Completed(LifecycleResult::Continue));
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_comes_later_is_evicted_unless_another_instances_node_has_the_name_by_now() {
    let mut successor = node();
    successor["spec"]["providerID"] = json!("aws:///us-east-1a/i-0fffffffffffffff0");
    for (now_there, moved) in [(node(), 2), (successor, 1)] {
        let later = watched("ADDED", &pod("b"));
        // An API server that has just started refuses what it will allow: until it says whose the node is, nothing is touched.
        let refused = call(format!("GET {NODE_PATH}")).says(403, status(403, "Forbidden", "nodes"));
        let look = call(format!("GET {NODE_PATH}")).says(200, now_there);
        // It is asked to leave, and has just gone by itself.
        let asked = call("POST /api/v1/namespaces/shop/pods/b/eviction").says(404, status(404, "NotFound", "pods"));
        let calls = [claim(), pods(&["a"]), eviction("a"), watch().streams(&[later, gone("a")]), refused, look];
        let context = TestContext::new(&[], calls.into_iter().chain((moved == 2).then_some(asked)), []);
        let case = Case::spot();
        let attempt = case.attempt(&context).await;
        let outcome = drain(&context, &case.target(&attempt), &mut Record::default()).await.unwrap();
        assert_eq!(outcome, drained(moved));
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_comes_late_is_used_only_if_the_node_is_still_the_claimed_one() {
    let mut successor = node();
    successor["spec"]["providerID"] = json!("aws:///us-east-1a/i-0fffffffffffffff0");
    for (now_there, moved) in [(node(), 1), (successor, 0)] {
        let never_answered = call("GET /api/v1/pods");
        let look = call(format!("GET {NODE_PATH}")).says(200, now_there);
        let asked = eviction("a").says(404, status(404, "NotFound", "pods"));
        let asked = (moved == 1).then_some(asked);
        let calls = [claim(), never_answered, pods(&["a"]), look].into_iter().chain(asked);
        let context = TestContext::new(&[], calls.chain([watch().streams(&[])]), []);
        let case = Case::spot();
        let attempt = case.attempt(&context).await;
        let outcome = drain(&context, &case.target(&attempt), &mut Record::default()).await.unwrap();
        assert_eq!(outcome, drained(moved));
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_was_created_while_the_list_was_awaited_has_come_back() {
    let mut back = pod("b");
    back["metadata"]["creationTimestamp"] = json!("1970-01-01T00:00:05Z");
    let look = || call(format!("GET {NODE_PATH}")).says(200, node());
    let has_gone = |name| eviction(name).says(404, status(404, "NotFound", "pods"));
    let streamed = watch().streams(&[watched("ADDED", &back)]);
    let calls =
        [claim(), call("GET /api/v1/pods"), pods(&["a"]), look(), has_gone("a"), streamed, look(), has_gone("b")];
    let context = TestContext::new(&[], calls, []);
    let (case, mut record) = (Case::spot(), Record::default());
    let attempt = case.attempt(&context).await;
    drain(&context, &case.target(&attempt), &mut record).await.unwrap();
    assert_eq!(record.put_back.unwrap().owners["rs"].once, ["uid-b"]);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_somebody_uncordons_is_cordoned_again_when_a_pod_comes() {
    let mut uncordoned = claimed(Kind::Spot.as_str(), "e-1", "r-1");
    uncordoned["spec"]["unschedulable"] = json!(false);
    let api = [
        claim(),
        pods(&["a"]),
        eviction("a"),
        watch().streams(&[watched("ADDED", &pod("b")), gone("a")]),
        call(format!("GET {NODE_PATH}")).says(200, uncordoned),
        call(format!("PATCH {NODE_PATH}")).with(r#""op":"add","path":"/spec/unschedulable""#).says(200, node()),
        eviction("b").says(404, status(404, "NotFound", "pods")),
    ];
    let (context, case) = (TestContext::new(&[], api, []), Case::spot());
    let attempt = case.attempt(&context).await;
    let outcome = drain(&context, &case.target(&attempt), &mut Record::default()).await.unwrap();
    assert_eq!(outcome, drained(2));
}

#[tokio::test(start_paused = true)]
async fn a_node_that_could_not_be_claimed_is_claimed_beside_its_drain() {
    let refused = || status(403, "", "nodes").replace("why", "admission webhook 'w' denied the request");
    let api = [
        call(format!("PATCH {NODE_PATH}")).says(403, refused()),
        pods(&["a"]),
        eviction("a"),
        watch().streams(&[]),
        call(format!("PATCH {NODE_PATH}")).says(403, refused()),
        call(format!("PATCH {NODE_PATH}")).says(200, node()),
        call("GET /api/v1/nodes").says(503, "busy").repeated().at_any_time(),
    ];
    let (context, case) = (TestContext::new(&[], api, []), Case::spot());
    let attempt = case.attempt(&context).await;
    let mut record = Record::default();
    drain(&context, &case.target(&attempt), &mut record).await.unwrap_err();
    assert_eq!(record.claim.map(|claim| claim.how), Some(How::First));
    let steps: Vec<_> = record.steps.iter().map(|(step, _)| *step).collect();
    assert_eq!(steps, [StepName::Claimed, StepName::Drained]);
}

/// Thirty tries are enough for two minutes: each pause is twice as long as the one before at most.
#[tokio::test(start_paused = true)]
async fn a_node_that_cannot_be_claimed_is_tried_ever_less_often() {
    let refused = || status(403, "", "nodes").replace("why", "admission webhook 'w' denied the request");
    let claim = || call(format!("PATCH {NODE_PATH}")).says(403, refused());
    let api = [claim(), pods(&["a"]), eviction("a"), watch().streams(&[])].into_iter();
    let looked_at = call("GET /api/v1/nodes").says(503, "busy").repeated().at_any_time();
    let (context, case) =
        (TestContext::new(&[], api.chain((0..30).map(|_| claim().perhaps())).chain([looked_at]), []), Case::spot());
    let attempt = case.attempt(&context).await;
    drain(&context, &case.target(&attempt), &mut Record::default()).await.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn a_dead_nodes_blocked_pod_is_deleted_unless_most_of_its_zone_is_silent() {
    let mut silent = node();
    silent["metadata"]["labels"]["topology.kubernetes.io/zone"] = json!("us-east-1a");
    silent["status"]["conditions"][0]["status"] = json!("Unknown");
    let nodes = || call("GET /api/v1/nodes").at_any_time();
    let zone = |nodes_of: &[serde_json::Value]| {
        nodes().with("labelSelector=topology.kubernetes.io%2Fzone%3Dus-east-1a").says(200, list("Node", nodes_of))
    };
    let two_budgets = status(500, "", "pods").replace("why", "This pod has more than one PodDisruptionBudget");
    let budgets = call("GET /apis/policy/v1/namespaces/shop/poddisruptionbudgets");
    let api = [
        claim(),
        pods(&["a"]),
        call("POST /api/v1/namespaces/shop/pods/a/eviction").says(500, two_budgets).repeated().at_any_time(),
        watch().streams(&[]).at_any_time(),
        budgets.says(403, status(403, "Forbidden", "poddisruptionbudgets")).repeated().at_any_time(),
        nodes().with("fieldSelector").without("watch=true").says(200, list("Node", &[silent.clone()])),
        nodes().with("fieldSelector").with("watch=true").streams(&[]),
        zone(&[silent.clone(), silent.clone(), node()]),
        zone(&[silent, node()]),
        call("PATCH /api/v1/namespaces/shop/pods/a/status").says(200, pod("a")).at_any_time(),
        call("DELETE /api/v1/namespaces/shop/pods/a").with("uid-a").says(200, pod("a")).at_any_time(),
    ];
    let context = TestContext::new(
        &[],
        api,
        [
            hook_described(),
            group_described(false),
            put_event().with("Spillway Drain Blocked"),
            put_event().with("Spillway Drain Unblocked"),
            completed("CONTINUE"),
        ],
    );
    let (case, began) = (Case::held(Kind::Terminate), Instant::now());
    let attempt = case.attempt(&context).await;
    let outcome = drain(&context, &case.target(&attempt), &mut Record::default()).await.unwrap();
    assert!(matches!(outcome, Next::Done(Outcome::Drain(DrainOutcome::Silent { .. }))), "{outcome:?}");
    let (two_looks, grace) = (120, 30);
    assert_eq!(began.elapsed().as_secs(), two_looks + grace);
}

#[tokio::test(start_paused = true)]
async fn that_a_drain_has_begun_is_told_once_it_is_under_way() {
    let context = TestContext::new(
        &[],
        [claim(), pods(&["a"]), eviction("a"), watch().lost(), pods(&[]), watch().streams(&[])],
        [put_event().with("Spillway Drain Begun")],
    );
    let case = Case::spot();
    let attempt = case.attempt(&context).await;
    let outcome = drain(&context, &case.target(&attempt), &mut Record::default()).await.unwrap();
    assert_eq!(outcome, drained(1));
}

#[tokio::test(start_paused = true)]
async fn pods_that_cannot_be_listed_for_want_of_a_right_are_a_failure_that_says_so() {
    let refused = call("GET /api/v1/pods").says(403, status(403, "Forbidden", "pods"));
    let context = TestContext::new(&[], [claim(), refused], []);
    let case = Case::spot();
    let attempt = case.attempt(&context).await;
    let failure = drain(&context, &case.target(&attempt), &mut Record::default()).await.unwrap_err();
    assert_eq!(failure.error_type(), "KubernetesDenied");
    assert!(failure.text().starts_with(&format!("cannot list the pods of node {NODE}")), "{}", failure.text());
}

#[tokio::test(start_paused = true)]
async fn a_list_that_fails_for_a_moment_is_made_again() {
    let busy = call("GET /api/v1/pods").says(503, "busy");
    let context = TestContext::new(&[], [claim(), busy, pods(&[]), watch().streams(&[])], []);
    let case = Case::spot();
    let attempt = case.attempt(&context).await;
    let outcome = drain(&context, &case.target(&attempt), &mut Record::default()).await.unwrap();
    assert_eq!(outcome, drained(0));
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
    let draining = drain(&context, &target, &mut record);
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
    let outcome = attempt.hold_action_during(drain(&context, &target, &mut record)).await.unwrap();
    assert_eq!(outcome, DrainOutcome::HookOver { node: NODE.to_owned(), lost: Some(1) }.into());
}

#[tokio::test(start_paused = true)]
async fn a_drain_that_only_waits_for_a_budget_is_parked_when_others_wait_for_their_turn() {
    let api = [
        claim(),
        pods(&["a", "b"]),
        eviction("a"),
        blocked("b"),
        watch().streams(&[gone("a")]).at_any_time(),
        no_right_to_budgets(),
        call("GET /api/v1/nodes").says(200, list("Node", &[node()])).repeated().perhaps(),
    ];
    let context = TestContext::new(&[], api, [hook_described(), group_described(false)]);
    let (case, mut record) = (Case::held(Kind::Terminate), Record::default());
    let due = Timestamp::UNIX_EPOCH - SignedDuration::from_hours(1);
    let queued = Queued { payload: json!(null), due, receipt_handle: String::new() };
    let turn = Turn::of(&queued, None, Timestamp::UNIX_EPOCH);
    let mut attempt = case.attempt(&context).await;
    attempt.turn = Some(&turn);
    let failure = drain(&context, &case.target(&attempt), &mut record).await.unwrap_err();
    assert!(matches!(failure, Failure::Parked { left: 1, all: 2, .. }), "{failure:?}");
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

/// By that condition its Job knows that it has not failed: an eviction sets it, a deletion does not.
#[tokio::test(start_paused = true)]
async fn a_pod_that_its_budget_blocks_to_the_end_is_deleted_with_a_condition_that_says_why() {
    let condition = call("PATCH /api/v1/namespaces/shop/pods/a/status").with(r#""uid":"uid-a""#);
    let condition = condition.with(r#""type":"DisruptionTarget""#).with(r#""reason":"DeletionBySpillway""#);
    let api = [
        claim(),
        pods(&["a"]),
        blocked("a"),
        watch().streams(&[]).at_any_time(),
        no_right_to_budgets(),
        condition.with(r#""lastTransitionTime":"1970-01-01T00:01:28Z""#).says(200, pod("a")),
        call("DELETE /api/v1/namespaces/shop/pods/a").with("uid-a").says(200, pod("a")),
    ];
    let told = ["Spillway Drain Blocked", "Spillway Drain Unblocked"].map(|what| put_event().with(what));
    let context = TestContext::new(&[], api, told);
    let (case, mut record) = (Case::spot(), Record::default());
    let attempt = case.attempt(&context).await;
    let failure = drain(&context, &case.target(&attempt), &mut record).await.unwrap_err();
    assert!(matches!(failure, Failure::PodsLost { lost: 1, all: 1, .. }), "{failure:?}");
    let answers: Vec<_> = record.pods[0].answers.keys().map(AsRef::as_ref).collect();
    assert_eq!(answers, ["blocked-by-budget", "deleted"]);
}

/// Drains a spot instance's node of its pod, and tells after how many seconds it had gone.
async fn gone_after(api: impl IntoIterator<Item = Expected>) -> i64 {
    let (context, case, mut record) = (TestContext::new(&[], api, []), Case::spot(), Record::default());
    let attempt = case.attempt(&context).await;
    drain(&context, &case.target(&attempt), &mut record).await.unwrap();
    record.steps.iter().find(|(done, _)| *done == StepName::Drained).unwrap().1.as_second()
}

#[tokio::test(start_paused = true)]
async fn an_eviction_without_an_answer_holds_the_watch_up_for_a_second() {
    let unanswered = call("POST /api/v1/namespaces/shop/pods/a/eviction");
    assert_eq!(gone_after([claim(), pods(&["a"]), unanswered, watch().streams(&[gone("a")])]).await, 1);
}

#[tokio::test(start_paused = true)]
async fn who_joins_a_drain_leaves_its_pods_to_the_claims_holder_for_three_seconds() {
    let theirs = claimed(Kind::Spot.as_str(), "e-0", "r-0");
    let api = [
        call(format!("PATCH {NODE_PATH}")).says(422, status(422, "Invalid", "nodes")),
        call(format!("GET {NODE_PATH}")).says(200, theirs),
        pods(&["a"]),
        watch().streams(&[]),
        eviction("a").says(404, status(404, "NotFound", "pods")),
    ];
    assert_eq!(gone_after(api).await, 3);
}
