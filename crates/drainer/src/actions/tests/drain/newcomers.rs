//! Pods that come to the node after its pods were listed.

use spillway_notice::continued::Earlier;

use super::*;

/// Any eviction would fail the test, and a watch: the node was cordoned long ago, so no late pod is waited for.
#[tokio::test(start_paused = true)]
async fn returned_pod_of_an_earlier_invocation_is_not_waited_for() {
    let mut back = pod("back");
    back["metadata"]["creationTimestamp"] = json!(Timestamp::UNIX_EPOCH);
    back["spec"]["tolerations"] = json!([{"operator": "Exists"}]);
    let ours = read_node(claimed(Kind::Spot.as_str(), "e-1", "r-0"));
    let context = TestContext::new(&[], [ours, claim_node(), list_pods(&[back])], []);
    let (mut case, from) = (Case::spot(), Timestamp::from_second(-60).unwrap());
    let node = Some(NODE.to_owned());
    case.history.earlier = vec![Earlier { request_id: "r-0".to_owned(), from, to: from, node, pods: [].into() }];
    let (outcome, record) = drain_case(&context, &case).await;
    assert_eq!((outcome.unwrap(), record.pods[0].fate), (drained(0), Fate::Returned));
}

#[tokio::test(start_paused = true)]
async fn later_pod_is_evicted_only_from_the_claimed_node() {
    for (now_there, moved) in [(node(), 2), (successor(), 1)] {
        // An API server that has just started refuses what it will allow. Until it answers, nothing is evicted.
        let refused = call(format!("GET {NODE_PATH}")).says(403, status(403, "Forbidden", "nodes"));
        let gone_by_itself = eviction("b").says(404, status(404, "NotFound", "pods"));
        let watched = watch_pods(&[watched("ADDED", &pod("b")), gone("a")]);
        let calls = [claim_node(), pods(&["a"]), eviction("a"), watched, refused, read_node(now_there)];
        let (outcome, _) = drain_spot(calls.into_iter().chain((moved == 2).then_some(gone_by_itself))).await;
        assert_eq!(outcome.unwrap(), drained(moved));
    }
}
