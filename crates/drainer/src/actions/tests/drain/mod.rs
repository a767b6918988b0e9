//! The drain: what it asks of the API server, in which order, and how fast.

mod ends;
mod newcomers;

use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use spillway_core::drain::deadline::Termination;
use spillway_core::node::claimant::How;
use spillway_core::outcome::{DrainOutcome, Outcome};
use spillway_notice::{Deadline, Kind};
use spillway_settings::LifecycleResult;
use tokio::time::Instant;

use super::drained;
use crate::actions::Next;
use crate::actions::drain::drain;
use crate::failure::Failure;
use crate::receipt::record::{HookStatus, Record};
use crate::receipt::{AfterDrain, StepName};
use crate::test_support::api_server::{NODE, NODE_PATH, claimed, list, no_volumes, node, pod, status, watched};
use crate::test_support::aws::{completed, group_described, heartbeat, hook_described, put_event};
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
        let (window, clock) = (attempt.window, case.invocation.clock);
        let over = Termination::Soon { respected_until: clock.instant(goes) };
        assert_eq!(window.instance_goes == over, is_over, "{late_s} s late: {window:?}");
        let waits_s = if is_over { 600 - late_s } else { 10 };
        assert_eq!(clock.at(window.end).as_second(), waits_s, "{late_s} s late");
    }
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
    let draining = Box::pin(drain(&context, &target, &mut record));
    let outcome = attempt.hold_action_during(draining).await.unwrap();
    assert_eq!(outcome, drained(2));
    assert_eq!(record.hook, HookStatus::Completed(LifecycleResult::Continue));
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
