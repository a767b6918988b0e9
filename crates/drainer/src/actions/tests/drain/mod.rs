//! Drain: its requests to the API server, their order and their time.

mod ends;
mod newcomers;

use spillway_core::drain::deadline::Termination;
use spillway_core::node::claimant::ClaimResult;

use super::*;

fn pods(names: &[&str]) -> Expected {
    list_pods(&names.iter().map(|name| pod(name)).collect::<Vec<_>>())
}

fn gone(name: &str) -> Value {
    let mut pod = pod(name);
    pod["metadata"]["resourceVersion"] = json!("9");
    watched("DELETED", &pod)
}

fn leaving(name: &str) -> Value {
    let mut leaving = pod(name);
    leaving["metadata"]["resourceVersion"] = json!("9");
    leaving["metadata"]["deletionTimestamp"] = json!("1970-01-01T00:00:30Z");
    leaving["metadata"]["deletionGracePeriodSeconds"] = json!(30);
    watched("MODIFIED", &leaving)
}

/// Drains a spot instance's node.
async fn drain_spot(api: impl IntoIterator<Item = Expected>) -> (Result<Next, Failure>, Record) {
    drain_case(&TestContext::new(&[], api, []), &Case::spot()).await
}

#[tokio::test(start_paused = true)]
async fn empty_node_is_watched_for_five_seconds() {
    let api = [claim_node(), pods(&[]), watch_pods(&[]), no_volumes()];
    let context = TestContext::new(&[], api, [hook_described(), group_described(false), completed("CONTINUE")]);
    let (outcome, record) = drain_case(&context, &Case::held(Kind::Terminate)).await;
    assert_eq!(outcome.unwrap(), drained(0));
    assert_eq!(record.after_drain, Some(AfterDrain { late_pods_ms: 5_000, ..AfterDrain::default() }));
    assert_eq!(second(&record, StepName::Drained), 0, "it was empty long before");
    assert_eq!(second(&record, StepName::Completed), 5);
}

#[tokio::test(start_paused = true)]
async fn notice_after_its_deadline_clamps_nothing_for_minutes() {
    let context = TestContext::new(&[], [], []);
    for (late_s, is_over) in [(-1, false), (0, true), (180, true)] {
        let mut case = Case::spot();
        let goes = Timestamp::UNIX_EPOCH - SignedDuration::from_secs(late_s);
        case.notice.deadline = Deadline::Hard(goes);
        let (window, clock) = (case.attempt(&context).await.window, case.invocation.clock);
        let over = Termination::SoonAtUnknownTime { respected_until: clock.instant(goes) };
        assert_eq!(window.instance_goes == over, is_over, "{late_s} s late: {window:?}");
        let waits_s = if is_over { 600 - late_s } else { 10 };
        assert_eq!(clock.at(window.end).as_second(), waits_s, "{late_s} s late");
    }
}

#[tokio::test(start_paused = true)]
async fn denied_cordon_is_repeated_during_the_drain() {
    let denied = || patch_node().says(403, denied_by_webhook(403));
    let observed = call("GET /api/v1/nodes").says(503, "busy").repeated().at_any_time();
    let api = [denied(), pods(&["a"]), eviction("a"), watch_pods(&[]), denied(), claim_node(), observed];
    let (outcome, record) = drain_spot(api).await;
    outcome.unwrap_err();
    assert_eq!(record.claim.map(|claim| claim.how), Some(ClaimResult::First));
    let steps: Vec<_> = record.steps.iter().map(|(step, _)| *step).collect();
    assert_eq!(steps, [StepName::Claimed, StepName::Drained]);
}

#[tokio::test(start_paused = true)]
async fn dead_node_forces_its_pod_unless_most_of_its_zone_is_silent() {
    let mut silent = node();
    silent["metadata"]["labels"]["topology.kubernetes.io/zone"] = json!("us-east-1a");
    silent["status"]["conditions"][0]["status"] = json!("Unknown");
    let zone = |nodes: &[Value]| {
        let of_zone = call("GET /api/v1/nodes").with("labelSelector=topology.kubernetes.io%2Fzone%3Dus-east-1a");
        of_zone.says(200, list("Node", nodes)).at_any_time()
    };
    let two_budgets = status(500, "", "pods").replace("why", "This pod has more than one PodDisruptionBudget");
    let budgets = call("GET /apis/policy/v1/namespaces/shop/poddisruptionbudgets");
    let api = [
        claim_node(),
        pods(&["a"]),
        call("POST /api/v1/namespaces/shop/pods/a/eviction").says(500, two_budgets).repeated().at_any_time(),
        watch_pods(&[]).at_any_time(),
        budgets.says(403, status(403, "Forbidden", "poddisruptionbudgets")).repeated().at_any_time(),
        list_node(silent.clone()).at_any_time(),
        watch_node().streams(&[]).at_any_time(),
        zone(&[silent.clone(), silent.clone(), node()]),
        zone(&[silent, node()]),
        call("PATCH /api/v1/namespaces/shop/pods/a/status").says(200, pod("a")).at_any_time(),
        call("DELETE /api/v1/namespaces/shop/pods/a").with("uid-a").says(200, pod("a")).at_any_time(),
    ];
    let events = ["Spillway Drain Blocked", "Spillway Drain Unblocked"].map(|what| put_event().with(what));
    let aws = [hook_described(), group_described(false)].into_iter().chain(events).chain([completed("CONTINUE")]);
    let (context, began) = (TestContext::new(&[], api, aws), Instant::now());
    let outcome = drain_case(&context, &Case::held(Kind::Terminate)).await.0.unwrap();
    assert!(matches!(outcome, Next::Done(Outcome::Drain(DrainOutcome::Silent { .. }))), "{outcome:?}");
    let (two_looks, grace) = (120, 30);
    assert_eq!(began.elapsed().as_secs(), two_looks + grace);
}

#[tokio::test(start_paused = true)]
async fn missing_right_to_list_pods_is_a_failure_at_once() {
    let refused = call("GET /api/v1/pods").says(403, status(403, "Forbidden", "pods"));
    let failure = drain_spot([claim_node(), refused]).await.0.unwrap_err();
    assert_eq!(failure.error_type(), "KubernetesDenied");
    assert!(failure.text().starts_with(&format!("cannot list the pods of node {NODE}")), "{}", failure.text());
}

/// A Job reads in the condition that its pod has not failed: an eviction sets the condition, a deletion does not.
#[tokio::test(start_paused = true)]
async fn blocked_pod_is_deleted_with_a_condition() {
    let why =
        json!({"reason": "DisruptionBudget", "message": "The disruption budget web needs 1 healthy pods and has 1"});
    let blocked = json!({"kind": "Status", "apiVersion": "v1", "code": 429, "details": {"causes": [why]}});
    let condition = call("PATCH /api/v1/namespaces/shop/pods/a/status").with(r#""uid":"uid-a""#);
    let condition = condition.with(r#""type":"DisruptionTarget""#).with(r#""reason":"DeletionBySpillway""#);
    let budgets = call("GET /apis/policy/v1/namespaces/shop/poddisruptionbudgets");
    let api = [
        claim_node(),
        pods(&["a"]),
        eviction("a").says(429, blocked).repeated(),
        watch_pods(&[]).at_any_time(),
        budgets.says(403, status(403, "Forbidden", "poddisruptionbudgets")).at_any_time(),
        condition.with(r#""lastTransitionTime":"1970-01-01T00:01:28Z""#).says(200, pod("a")),
        call("DELETE /api/v1/namespaces/shop/pods/a").with("uid-a").says(200, pod("a")),
    ];
    let events = ["Spillway Drain Blocked", "Spillway Drain Unblocked"].map(|what| put_event().with(what));
    let (outcome, record) = drain_case(&TestContext::new(&[], api, events), &Case::spot()).await;
    let failure = outcome.unwrap_err();
    assert!(matches!(failure, Failure::PodsLost { lost: 1, all: 1, .. }), "{failure:?}");
    let answers: Vec<_> = record.pods[0].answers.keys().map(AsRef::as_ref).collect();
    assert_eq!(answers, ["blocked-by-budget", "deleted"]);
}

#[tokio::test(start_paused = true)]
async fn unanswered_eviction_delays_the_watch_by_a_second() {
    let unanswered = call("POST /api/v1/namespaces/shop/pods/a/eviction");
    let (outcome, record) = drain_spot([claim_node(), pods(&["a"]), unanswered, watch_pods(&[gone("a")])]).await;
    assert_eq!((outcome.unwrap(), second(&record, StepName::Drained)), (drained(1), 1));
}

#[tokio::test(start_paused = true)]
async fn joined_drain_leaves_pods_to_the_holder_for_three_seconds() {
    let api = [
        patch_node().says(422, status(422, "Invalid", "nodes")),
        read_node(claimed(Kind::Spot.as_str(), "e-0", "r-0")),
        pods(&["a"]),
        watch_pods(&[]),
        eviction("a").says(404, status(404, "NotFound", "pods")),
    ];
    let (outcome, record) = drain_spot(api).await;
    outcome.unwrap();
    let claim = record.claim.as_ref().unwrap();
    assert_eq!((claim.is_joined(), claim.holder.as_str()), (true, "e-0"));
    assert_eq!(second(&record, StepName::Drained), 3);
}
