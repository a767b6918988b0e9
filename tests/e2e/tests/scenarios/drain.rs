//! The drain of a spot notice: claim, evictions, waits.
//!
//! Reason: whole way, API semantics, connection.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::DeleteParams;
use kube::{Api, ResourceExt as _};
use spillway_bed::NodeOptions;
use spillway_bed::pods::{self, PodShape};
use spillway_e2e::{Stage, answer, assert_drained, fates, spot_notice};

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

    let outcome = stage.deliver(stage.interrupt().await).await;

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

#[tokio::test]
async fn daemon_set_pod_stays_and_critical_pod_leaves_last() {
    let mut stage = Stage::set("kinds").await;
    let (client, name) = (stage.client(), &stage.name);
    let on_node = || PodShape::default().on_node(&stage.node.name);
    pods::create(&client, &pods::daemon_set(name, "agent", &on_node())).await.expect("a daemon set");
    let job = pods::job(name, "job", &on_node().completes_after(Duration::ZERO));
    pods::create(&client, &job).await.expect("a job");
    pods::create(&client, &pods::bare_pod(name, "bare", &on_node())).await.expect("a pod");
    pods::until_running_of(&client, name, "agent", 1).await.expect("its pod runs");
    pods::until_succeeded(&client, name, "job").await.expect("its pod succeeds");
    stage.deploy("web", 2, PodShape::default().exits_after(Duration::from_secs(2))).await;
    // Critical pods may only live in kube-system.
    let dns = on_node().priority_class("system-cluster-critical");
    pods::run_deployment(&client, "kube-system", "kinds-dns", 1, &dns).await.expect("its pod runs");

    let outcome = stage.drain().await;

    let fates = fates(answer(&outcome));
    assert_eq!(fates, [("clean".to_owned(), 5), ("stayed".to_owned(), 1)].into(), "{outcome:#?}");
    let left = pods::on_node(&client, &stage.node.name).await.expect("a list");
    assert_eq!(left.iter().map(|pod| &*pod.labels()["app"]).collect::<Vec<_>>(), ["agent"]);
    let evictions: Vec<_> = stage.requests().into_iter().filter(spillway_bed::audit::Request::is_eviction).collect();
    assert!(evictions.last().is_some_and(|last| last.name.starts_with("kinds-dns")), "{evictions:?}");
}

#[tokio::test]
async fn pod_of_the_same_name_on_another_node_is_left_alone() {
    let mut stage = Stage::set("moved").await;
    let other = stage.world.add_node(NodeOptions::default()).await.expect("the node joins");
    let client = stage.client();
    let bare = |node: &str| pods::bare_pod("moved", "db-0", &PodShape::default().on_node(node));
    // Lost: kwok would report the end of a pod by its name, when the new pod may have the name.
    let mut old = bare(&stage.node.name);
    old.annotations_mut().insert("spillway.test/lost".to_owned(), "true".to_owned());
    pods::create(&client, &old).await.expect("a pod");
    pods::until_running_on(&client, &stage.node.name, 1).await.expect("the pod runs");
    let moved = Api::<Pod>::namespaced(client.clone(), "moved");

    let mut new = None;
    let outcome = stage
        .drain_with("create pods/eviction", async || {
            moved.delete("db-0", &DeleteParams::default().grace_period(0)).await.expect("the pod existed");
            new = pods::create(&client, &bare(&other.name)).await.expect("a pod of the same name").uid();
        })
        .await;

    assert_eq!(answer(&outcome)["ending"], "drained", "{outcome:#?}");
    let eviction = stage.requests().into_iter().find(spillway_bed::audit::Request::is_eviction);
    assert_eq!(eviction.expect("an eviction").code, Some(409));
    let now = moved.get("db-0").await.expect("the pod exists");
    assert_eq!((now.uid(), now.metadata.deletion_timestamp), (new, None));
}

/// The instance's private DNS name is the name of another instance's node.
#[tokio::test]
async fn other_node_with_the_instances_dns_name_is_not_touched() {
    let stage = Stage::set_with("stranger", NodeOptions::named("stranger-own")).await;
    let stranger = NodeOptions::named(&stage.node.private_dns_name);
    let stranger = stage.world.add_node(stranger).await.expect("the node joins");

    let outcome = stage.deliver(spot_notice(&stage.node.instance_id, Timestamp::now())).await;

    assert_eq!(answer(&outcome)["node"], "stranger-own");
    assert_eq!(cordon_and_claim(&stage, &stranger.name).await, (false, None));
}
