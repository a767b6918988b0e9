//! What is told of a drain that others do.

use serde_json::{Value, json};
use spillway_core::outcome::{Observed, Outcome};
use spillway_notice::{Deadline, Kind};
use spillway_receipt::Fate;

use super::done;
use crate::actions::observe::observe;
use crate::receipt::record::Record;
use crate::test_support::api_server::{NODE_PATH, list, node, pod, status, watched};
use crate::test_support::aws::put_event;
use crate::test_support::context::{Case, TestContext};
use crate::test_support::script::{Expected, call};

/// What the API server is asked besides the pods.
fn besides(node_watch: &[Value]) -> [Expected; 4] {
    let nodes = || call("GET /api/v1/nodes").at_any_time();
    let budgets = call("GET /apis/policy/v1/namespaces/shop/poddisruptionbudgets");
    [
        call(format!("GET {NODE_PATH}")).says(200, node()),
        nodes().without("watch=true").says(200, list("Node", &[node()])),
        nodes().with("watch=true").streams(node_watch).repeated(),
        budgets.says(403, status(403, "Forbidden", "poddisruptionbudgets")).at_any_time(),
    ]
}

/// What is told, and the fates of the pods, of a drain in which `a` and `b` leave and `c` does not; then the node's watch shows that.
async fn observed(case: Case, node_watch: &[Value]) -> (Observed, Vec<Fate>) {
    let gone = |name| {
        let mut gone = pod(name);
        gone["metadata"]["resourceVersion"] = json!("9");
        watched("DELETED", &gone)
    };
    let pods = |names: &[&str]| list("Pod", &names.iter().map(|name| pod(name)).collect::<Vec<_>>());
    let listed = || call("GET /api/v1/pods").without("watch=true");
    let api = [
        listed().says(200, pods(&["a", "b", "c"])),
        call("GET /api/v1/pods").with("watch=true").streams(&[gone("a"), gone("b")]).at_any_time(),
        listed().says(200, pods(&["c"])).perhaps(),
    ];
    let api = besides(node_watch).into_iter().chain(api);
    let (context, mut record) = (TestContext::new(&[], api, []), Record::default());
    let attempt = case.attempt(&context).await;
    match done(observe(&context, &case.target(&attempt), &mut record).await.unwrap()) {
        Outcome::Observed(observed) => (observed, record.pods.iter().map(|pod| pod.fate).collect()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_has_not_left_is_lost_only_if_its_node_has_gone_or_its_instance_goes() {
    let [spot, rebalance]: [fn() -> Case; 2] = [Case::spot, || Case::of(Kind::Rebalance, Deadline::Open)];
    let deleted = watched("DELETED", &node());
    for (case, node_watch, left) in
        [(spot, &[][..], Fate::Lost), (rebalance, &[], Fate::Remaining), (rebalance, &[deleted], Fate::Lost)]
    {
        let (observed, fates) = observed(case(), node_watch).await;
        assert_eq!((observed.gone, observed.all, observed.is_deleted), (2, 3, !node_watch.is_empty()));
        assert_eq!(fates, [Fate::Clean, Fate::Clean, left]);
        assert_eq!(observed.left.len(), 1, "{observed:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn of_what_blocks_a_pod_for_long_it_is_told_that_nobody_is_known_to_force_it() {
    let mut blocked = pod("a");
    blocked["metadata"]["annotations"] = json!({"karpenter.sh/do-not-disrupt": "true"});
    let api = [
        call("GET /api/v1/pods").without("watch=true").says(200, list("Pod", &[blocked])),
        call("GET /api/v1/pods").with("watch=true").streams(&[]).at_any_time(),
    ];
    let told = put_event().with("Spillway Drain Blocked").with("and nothing forces it to leave");
    let (context, case) = (TestContext::new(&[], besides(&[]).into_iter().chain(api), [told]), Case::spot());
    let attempt = case.attempt(&context).await;
    observe(&context, &case.target(&attempt), &mut Record::default()).await.unwrap();
}
