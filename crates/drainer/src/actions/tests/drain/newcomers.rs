//! Pods that come to the node after its pods were listed.

use jiff::Timestamp;
use serde_json::{Value, json};
use spillway_notice::Kind;
use spillway_notice::continued::Earlier;
use spillway_receipt::Fate;

use super::{claim, drained, eviction, gone, pods, watch};
use crate::actions::drain::drain;
use crate::receipt::record::Record;
use crate::test_support::api_server::{NODE, NODE_PATH, claimed, list, no_volumes, node, pod, status, watched};
use crate::test_support::aws::{completed, group_described, hook_described};
use crate::test_support::context::{Case, TestContext};
use crate::test_support::script::call;

/// The pod of that name, which tolerates the cordon and was created that many seconds after the notice.
fn tolerant(name: &str, created_s: i64) -> Value {
    let mut pod = pod(name);
    pod["metadata"]["creationTimestamp"] = json!(Timestamp::from_second(created_s).unwrap());
    pod["spec"]["tolerations"] = json!([{"operator": "Exists"}]);
    pod
}

/// Any eviction would fail the test, and a watch: the node was cordoned long ago, so no late pod is waited for.
#[tokio::test(start_paused = true)]
async fn returned_pod_of_an_earlier_invocation_is_not_waited_for() {
    let listed = call("GET /api/v1/pods").without("watch=true").says(200, list("Pod", &[tolerant("back", 0)]));
    let ours = call(format!("GET {NODE_PATH}")).says(200, claimed(Kind::Spot.as_str(), "e-1", "r-0"));
    let context = TestContext::new(&[], [ours, claim(), listed], []);
    let (mut case, mut record) = (Case::spot(), Record::default());
    let from = Timestamp::from_second(-60).unwrap();
    let node = Some(NODE.to_owned());
    case.history.earlier = vec![Earlier { request_id: "r-0".to_owned(), from, to: from, node, pods: [].into() }];
    let attempt = case.attempt(&context).await;
    let outcome = drain(&context, &case.target(&attempt), &mut record).await.unwrap();
    assert_eq!(outcome, drained(0));
    assert_eq!(record.pods[0].fate, Fate::Returned);
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
