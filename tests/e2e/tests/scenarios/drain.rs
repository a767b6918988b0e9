//! The drain of a spot notice: claim, evictions, waits.
//!
//! Reason: whole way, API semantics, connection.

use k8s_openapi::api::core::v1::Node;
use kube::{Api, ResourceExt as _};
use spillway_bed::NodeOptions;
use spillway_bed::pods::{self, PodShape};
use spillway_e2e::{Stage, answer, assert_drained};

async fn cordon_and_claim(stage: &Stage, node: &str) -> (bool, Option<String>) {
    let node = Api::<Node>::all(stage.client()).get(node).await.expect("the node exists");
    let cordoned = node.spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or(false);
    (cordoned, node.annotations().get("spillway/claim").cloned())
}

#[tokio::test]
async fn spot_notice_drains_its_node_and_no_other() {
    let stage = Stage::set("spot").await;
    let neighbour = stage.world.add_node(NodeOptions::default()).await.expect("the node joins");
    stage.deploy_quick("web", 5).await;

    let outcome = stage.lambda.invoke(stage.interrupt().await).await;

    assert_drained(&outcome, 5);
    assert_eq!(answer(&outcome)["node"], stage.node.name);
    assert!(pods::on_node(&stage.client(), &stage.node.name).await.expect("a list").is_empty());
    let (cordoned, claim) = cordon_and_claim(&stage, &stage.node.name).await;
    assert!(cordoned && claim.is_some_and(|claim| claim.contains("spot interruption")));
    assert_eq!(cordon_and_claim(&stage, &neighbour.name).await, (false, None));
}

#[tokio::test]
async fn claim_list_and_evictions_take_one_connection_in_this_order() {
    let stage = Stage::set("order").await.with_own_stack().await;
    stage.deploy("web", 8, PodShape::default()).await;
    // On the wire: the API server receives concurrent requests in any order.
    let gateway = stage.through_gateway().await;

    assert!(stage.drain().await.result.is_ok());

    let order = gateway.rules().calls();
    assert_eq!(order[..3], ["patch nodes", "list pods", "create pods/eviction"], "{order:?}");
    // The API server ends a watch whose reader does not keep up with a burst of changes, and the watch is made again.
    let watches = order.iter().filter(|call| *call == "watch pods").count();
    assert!(watches >= 1, "{order:?}");
    assert_eq!(order.len() - watches, 8 + 2, "a claim, a list and an eviction of each pod: {order:?}");
    let network = gateway.network();
    assert_eq!((network.connections(), network.client_hellos()), (1, 1));
}
