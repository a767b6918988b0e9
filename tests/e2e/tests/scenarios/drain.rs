//! A notice drains the right node: the claim, the evictions, the waiting.
//!
//! Reason: whole way, API semantics, connection.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::DeleteParams;
use kube::{Api, ResourceExt as _};
use spillway_bed::pods::{self, PodShape};
use spillway_bed::{NodeOptions, TestNode};
use spillway_e2e::{Stage, fates, spot_notice};

const SPOT: Duration = Duration::from_secs(120);
const WAIT: Duration = Duration::from_mins(1);

async fn node(stage: &Stage, node: &TestNode) -> Node {
    Api::<Node>::all(stage.world.admin()).get(&node.name).await.expect("the node is there")
}

fn is_cordoned(node: &Node) -> bool {
    node.spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or(false)
}

#[tokio::test]
async fn a_spot_notice_cordons_the_right_node_and_moves_its_pods() {
    let stage = Stage::set("spot").await;
    let neighbour = stage.world.add_node(NodeOptions::default()).await.expect("the node joins");
    stage.deploy("web", 5, PodShape::default().exits_after(Duration::from_secs(1))).await;

    let outcome = stage.deliver(stage.interrupt(SPOT).await).await;

    let answer = outcome.result.as_ref().expect("it drains");
    assert_eq!(answer["ending"], "drained", "{outcome:#?}");
    assert_eq!(answer["node"], stage.node.name);
    assert_eq!(fates(answer)["clean"], 5);
    let client = stage.world.admin();
    assert!(pods::on_node(&client, &stage.node.name).await.expect("a list").is_empty());
    let drained = node(&stage, &stage.node).await;
    assert!(is_cordoned(&drained));
    assert!(drained.annotations()["spillway/claim"].contains("spot interruption"));
    let untouched = node(&stage, &neighbour).await;
    assert!(!is_cordoned(&untouched));
    assert!(!untouched.annotations().contains_key("spillway/claim"));
}

#[tokio::test]
async fn the_claim_comes_first_then_the_list_then_the_evictions_over_one_connection() {
    let stage = Stage::set("order").await;
    stage.deploy("web", 8, PodShape::default()).await;
    // On the wire: requests that come together the API server begins with as chance has it.
    let gateway = stage.through_gateway().await;

    let outcome = stage.lambda.invoke(stage.interrupt(SPOT).await).await;

    assert!(outcome.result.is_ok(), "{outcome:#?}");
    let order = gateway.rules().calls();
    assert_eq!(order[..3], ["patch nodes", "list pods", "create pods/eviction"], "{order:?}");
    // A watch may end and be made again: the API server ends one whose reader does not keep up with a burst of changes.
    let watches = order.iter().filter(|call| *call == "watch pods").count();
    assert!(watches >= 1, "{order:?}");
    assert_eq!(order.len() - watches, 8 + 2, "a claim, a list and an eviction for each pod: {order:?}");
    let network = gateway.network();
    assert_eq!((network.connections(), network.client_hellos()), (1, 1));
}

#[tokio::test]
async fn what_must_stay_stays_and_critical_pods_leave_last() {
    let mut stage = Stage::set("kinds").await;
    let client = stage.world.admin();
    let on_node = || PodShape::default().on_node(&stage.node.name);
    let name = &stage.name;
    let agent = pods::daemon_set(name, "agent", &on_node());
    pods::create(&client, &agent).await.expect("it is created");
    let job = pods::job(name, "job", &on_node().completes_after(Duration::ZERO));
    pods::create(&client, &job).await.expect("it is created");
    let bare = pods::bare_pod(name, "bare", &on_node());
    pods::create(&client, &bare).await.expect("it is created");
    pods::until_running_of(&client, name, "agent", 1).await.expect("it runs");
    pods::until_succeeded(&client, name, "job").await.expect("it ends");
    stage.deploy("web", 2, PodShape::default().exits_after(Duration::from_secs(2))).await;
    // Critical pods may only live in kube-system.
    let dns = PodShape::default().priority_class("system-cluster-critical").on_node(&stage.node.name);
    pods::run_deployment(&client, "kube-system", "kinds-dns", 1, &dns).await.expect("it runs");

    let outcome = stage.lambda.invoke(stage.interrupt(SPOT).await).await;

    let answer = outcome.result.as_ref().expect("it drains");
    assert_eq!(fates(answer), [("clean".to_owned(), 5), ("stayed".to_owned(), 1)].into(), "{answer:#}");
    let left = pods::on_node(&client, &stage.node.name).await.expect("a list");
    assert_eq!(left.iter().map(pod_app).collect::<Vec<_>>(), ["agent"]);
    let requests = stage.audit.requests().expect("the audit log");
    let evictions: Vec<_> = requests.iter().filter(|r| r.subresource == "eviction").collect();
    let last = evictions.last().expect("evictions");
    assert!(last.name.starts_with("kinds-dns"), "{evictions:?}");
}

fn pod_app(pod: &Pod) -> String {
    pod.labels().get("app").cloned().unwrap_or_default()
}

#[tokio::test]
async fn a_pod_that_moved_to_another_node_under_its_name_is_left_alone() {
    let mut stage = Stage::set("moved").await;
    let other = stage.world.add_node(NodeOptions::default()).await.expect("the node joins");
    let client = stage.world.admin();
    let bare = |node: &str| pods::bare_pod("moved", "db-0", &PodShape::default().on_node(node));
    // Its kubelet will not say that it has stopped: kwok would, by its name, when the next one may have it.
    let mut old = bare(&stage.node.name);
    old.annotations_mut().insert("spillway.test/lost".to_owned(), "true".to_owned());
    pods::create(&client, &old).await.expect("it is created");
    pods::until_running_on(&client, &stage.node.name, 1).await.expect("it runs");
    let moved = Api::<Pod>::namespaced(client.clone(), "moved");

    let mut new = None;
    let outcome = stage
        .drain_with("create pods/eviction", async || {
            moved.delete("db-0", &DeleteParams::default().grace_period(0)).await.expect("it is deleted");
            new = pods::create(&client, &bare(&other.name)).await.expect("it is created again").uid();
        })
        .await;

    assert_eq!(outcome.result.as_ref().expect("it drains")["ending"], "drained", "{outcome:#?}");
    let evicted = stage.audit.requests().expect("the audit log").into_iter().find(|r| r.subresource == "eviction");
    assert_eq!(evicted.expect("an eviction was asked for").code, Some(409));
    let now = moved.get("db-0").await.expect("it is there");
    assert_eq!(now.uid(), new);
    assert_eq!(now.metadata.deletion_timestamp, None, "the wrong pod was evicted");
}

#[tokio::test]
async fn a_pod_that_asks_for_more_than_is_left_gets_what_is_left() {
    let stage = Stage::set("grace").await;
    let client = stage.world.admin();
    let stubborn = PodShape::default().grace(600).exits_after(Duration::from_secs(4));
    stage.deploy("stubborn", 1, stubborn).await;
    let event = stage.interrupt(SPOT).await;
    let lambda = stage.lambda.clone();
    let drain = tokio::spawn(async move { lambda.invoke(event).await });

    let given = leaving_grace(&client, &stage.name).await;
    assert!((60..=118).contains(&given), "it was given {given} s");
    let outcome = drain.await.expect("no panic");
    let answer = outcome.result.as_ref().expect("it drains");
    assert_eq!(answer["pods"][0]["fate"], "clamped");
    assert_eq!(answer["pods"][0]["grace_s"], 600);
    assert_eq!(answer["pods"][0]["given_s"], given);
}

/// The grace that the API server noted on a pod that is being deleted.
async fn leaving_grace(client: &kube::Client, namespace: &str) -> i64 {
    let pods = Api::<Pod>::namespaced(client.clone(), namespace);
    let all = kube::api::WatchParams::default();
    spillway_bed::watch::until(&pods, &all, "a pod that leaves", WAIT, |pods| {
        let given = pods.values().find_map(|pod| pod.metadata.deletion_grace_period_seconds);
        given.ok_or_else(|| "none leaves".to_owned())
    })
    .await
    .expect("a pod leaves")
}

#[tokio::test]
async fn another_node_that_has_the_name_is_not_touched() {
    // The instance's node goes by another name, and its private DNS name is taken by a stranger's.
    let stage =
        Stage::set_with("stranger", NodeOptions { name: Some("stranger-own".to_owned()), ..NodeOptions::default() })
            .await;
    let dns_name = stage.node.private_dns_name.clone();
    let stranger =
        stage.world.add_node(NodeOptions { name: Some(dns_name), ..NodeOptions::default() }).await.expect("it joins");

    let outcome = stage.deliver(spot_notice(&stage.node.instance_id, jiff::Timestamp::now())).await;

    assert_eq!(outcome.result.as_ref().expect("it drains")["node"], "stranger-own");
    assert!(!is_cordoned(&node(&stage, &stranger).await));
}
