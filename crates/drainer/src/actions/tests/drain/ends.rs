//! Drains that do not end drained, and drains over several invocations.

use spillway_core::drain::deadline::Termination;
use spillway_notice::continued::Earlier;

use super::*;

/// Observation of the node while a pod is overdue.
fn observed() -> Expected {
    call("GET /api/v1/nodes").says(200, list("Node", &[node()])).repeated().at_any_time()
}

/// Drains pods that do not leave within their hook's minute, and `gone`, which leaves. The hook gets `ABANDON`.
async fn keep_instance(
    is_kept_before: bool,
    stay: &[&str],
    leave: &[&str],
    group: impl IntoIterator<Item = Expected>,
) -> Failure {
    let events: Vec<_> = stay.iter().map(|name| leaving(name)).chain(leave.iter().map(|name| gone(name))).collect();
    let listed = [stay, leave].concat();
    let evictions = listed.iter().map(|name| eviction(name));
    let api = [claim_node(), pods(&listed)].into_iter().chain(evictions).chain([watch_pods(&events), observed()]);
    let aws = [hook_described()].into_iter().chain(group).chain([completed("ABANDON")]);
    let mut case = Case::held(Kind::Terminate);
    case.history.is_kept = is_kept_before;
    let (outcome, record) = drain_case(&TestContext::new(&[("SPILLWAY_HOOK_MAX_WAIT_S", "60")], api, aws), &case).await;
    assert_eq!(record.window.unwrap().instance_goes, Termination::MayStay, "nothing is forced");
    let failure = outcome.unwrap_err();
    assert_eq!(failure.error_type(), "InstanceKept");
    failure
}

#[tokio::test(start_paused = true)]
async fn kept_instance_names_the_pods_left() {
    let failure = keep_instance(false, &["a", "b", "c", "d", "e"], &["f"], [group_described(true)]).await;
    assert!(failure.text().contains("shop/c: it was still shutting down; 2 more)"), "{}", failure.text());
}

/// Auto Scaling is called until pods may be forced. Without an answer the state of the earlier invocation holds.
#[tokio::test(start_paused = true)]
async fn retention_is_read_until_pods_may_be_forced() {
    let throttled = || call("DescribeAutoScalingGroups").says(400, query_error("Throttling", "Rate exceeded"));
    keep_instance(false, &["a"], &[], (0..4).map(|_| throttled()).chain([group_described(true)])).await;
    keep_instance(true, &["a"], &[], [throttled().repeated().at_any_time()]).await;
}

/// Pods of those names were left by an earlier invocation.
fn continued(names: &[&str]) -> Case {
    let (mut case, grace) = (Case::held(Kind::Terminate), Duration::from_secs(30));
    let left = |name: &&str| PodRecord::of(format!("shop/{name}"), format!("uid-{name}"), Fate::Remaining, grace);
    case.history.remaining = names.iter().map(left).collect();
    let (at, node) = (case.notice.time, Some(NODE.to_owned()));
    case.history.earlier = vec![Earlier { request_id: "r-0".to_owned(), from: at, to: at, node, pods: [].into() }];
    case
}

fn fates(record: &Record) -> Vec<(&str, Fate)> {
    record.pods.iter().map(|pod| (pod.pod.as_str(), pod.fate)).collect()
}

#[tokio::test(start_paused = true)]
async fn pods_that_left_between_two_invocations_count() {
    let taken_over = [read_node(claimed(Kind::Terminate.as_str(), "e-1", "r-0")), claim_node()];
    let drain = [pods(&["a"]), eviction("a"), watch_pods(&[gone("a")]), no_volumes()];
    let aws = [hook_described(), group_described(false), completed("CONTINUE")];
    let context = TestContext::new(&[], taken_over.into_iter().chain(drain), aws);
    let (outcome, record) = drain_case(&context, &continued(&["a", "b", "c"])).await;
    assert_eq!(outcome.unwrap(), drained(3));
    assert_eq!(fates(&record), [("shop/a", Fate::Clean), ("shop/b", Fate::Clean), ("shop/c", Fate::Clean)]);
}

#[tokio::test(start_paused = true)]
async fn pod_on_the_node_of_a_hook_that_is_over_is_lost() {
    let api = [call(format!("GET {NODE_PATH}")).perhaps(), pods(&["a"])];
    let context = TestContext::new(&[], api, [hook_described(), group_described(false).perhaps(), hook_over()]);
    let (outcome, record) = drain_held(&context, &continued(&["a", "b"])).await;
    assert_eq!(outcome.unwrap(), DrainOutcome::HookOver { node: NODE.to_owned(), lost: Some(1) }.into());
    assert_eq!(fates(&record), [("shop/a", Fate::Lost), ("shop/b", Fate::Unconfirmed)]);
    assert_eq!((record.node.as_deref(), record.hook), (Some(NODE), HookStatus::AlreadyOver(None)));
}
