//! Much at once: many pods on a node, many nodes, a large cluster. By count; no clock is judged.
//!
//! Each test has a machine's worth of work, so they take turns.

use std::time::Duration;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use jiff::Timestamp;
use kube::Client;
use spillway_bed::audit::{AuditLog, Request};
use spillway_bed::filler::Filler;
use spillway_bed::load::{self, Cost, PODS};
use spillway_bed::pods::{self, PodShape};
use spillway_bed::{BedError, NodeOptions, TestNode, World};
use spillway_e2e::{Stage, fates, function, spot_notice, world};
use tokio::sync::{Mutex, MutexGuard};

const SPOT: Duration = Duration::from_secs(120);
/// Nodes in an answer of the search.
const PAGE: usize = 100;
/// The memory that the search may need: a page, and not a cluster.
const SEARCH: u64 = 6 << 20;
/// Pods that are created at a time.
const CREATED_AT_ONCE: usize = 8;

async fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::const_new(());
    TURN.lock().await
}

/// Pods that exit at once and that nobody puts back.
async fn put_pods(client: &Client, namespace: &str, node: &str, count: usize) -> Result<(), BedError> {
    let shape = PodShape::default().bound_to(node);
    let creations = (0..count).map(|number| {
        let pod = pods::bare_pod(namespace, &format!("{node}-{number}"), &shape);
        async move { pods::create(client, &pod).await.map(drop) }
    });
    stream::iter(creations).buffer_unordered(CREATED_AT_ONCE).try_collect::<()>().await?;
    pods::until_running_on(client, node, count).await.map(drop)
}

/// The pods whose eviction was granted, as often as it was. A busy API server may have put some off before.
fn evicted(requests: &[Request]) -> Vec<&str> {
    let granted = requests.iter().filter(|request| request.subresource == "eviction" && request.code == Some(201));
    let mut names: Vec<&str> = granted.map(|request| request.name.as_str()).collect();
    names.sort_unstable();
    names
}

/// All pods of some nodes, once.
fn all_pods(nodes: &[TestNode], pods: usize) -> Vec<String> {
    let names = nodes.iter().flat_map(|node| (0..pods).map(|number| format!("{}-{number}", node.name)));
    let mut names: Vec<String> = names.collect();
    names.sort_unstable();
    names
}

/// What a node's drain may cost: 1.1 requests a pod, and 4 beside.
fn allowed(pods: usize) -> usize {
    pods + pods / 10 + 4
}

#[tokio::test]
async fn a_node_of_three_hundred_pods_is_drained_with_one_eviction_each() {
    let _turn = turn().await;
    let mut stage = Stage::set_with("hundreds", NodeOptions { pods: 300, spot: true, ..NodeOptions::default() }).await;
    put_pods(&stage.world.admin(), &stage.name, &stage.node.name, 300).await.expect("its pods run");

    let outcome = stage.lambda.invoke(stage.interrupt(SPOT).await).await;

    let answer = outcome.result.as_ref().expect("it drains");
    assert_eq!(answer["ending"], "drained");
    assert_eq!(fates(answer), [("clean".to_owned(), 300)].into());
    let requests = stage.audit.requests().expect("the audit log");
    assert_eq!(evicted(&requests), all_pods(&[stage.node.clone()], 300));
    assert!(requests.len() <= allowed(300), "{} requests", requests.len());
}

#[tokio::test]
async fn fifty_nodes_at_once_are_drained_within_the_window_and_nothing_is_put_off() {
    let _turn = turn().await;
    let world = world().await;
    let client = world.admin();
    pods::create_namespace(&client, "fleet").await.expect("the namespace is new");
    let nodes = stream::iter(0..50).map(|_| node_with_pods(world, &client, "fleet"));
    let nodes: Vec<TestNode> = nodes.buffer_unordered(4).try_collect().await.expect("the nodes join");
    // Each notice comes to a process of its own, as with Lambda.
    let lambda = function(world, "fleet", &[]).await;
    let mut audit = AuditLog::of_user(&world.audit_log, "assumed-role/spillway-drain/fleet");

    let drains = nodes.iter().map(|node| lambda.invoke(spot_notice(&node.instance_id, Timestamp::now())));
    let outcomes = futures_util::future::join_all(drains).await;

    for outcome in &outcomes {
        let answer = outcome.result.as_ref().expect("it drains");
        assert_eq!((&answer["ending"], fates(answer)["clean"]), (&"drained".into(), PODS), "{answer:#}");
    }
    let requests = audit.requests().expect("the audit log");
    assert_eq!(evicted(&requests), all_pods(&nodes, PODS));
    // By deploy/flow-control.yaml; without it the API server answers many of them with 429.
    let put_off = requests.iter().filter(|request| request.code == Some(429)).count();
    assert_eq!(put_off, 0, "of {} requests", requests.len());
    assert!(requests.len() <= 50 * allowed(PODS), "{} requests", requests.len());
    assert_eq!(lambda.process_ids().len(), 50);
}

async fn node_with_pods(world: &World, client: &Client, namespace: &str) -> Result<TestNode, BedError> {
    let node = world.add_node(NodeOptions::default()).await?;
    put_pods(client, namespace, &node.name, PODS).await?;
    Ok(node)
}

#[tokio::test]
async fn a_drain_costs_the_same_in_a_large_cluster_and_its_search_is_paged() {
    let _turn = turn().await;
    let filler = Filler { nodes: 500, pods: 5_000 };
    let load = load::measure(world().await, filler).await.expect("it drains");
    // A watch may end and be made anew: that is no cost of the cluster's size.
    let without_watches = |cost: &Cost| {
        let mut requests = cost.requests.clone();
        requests.remove("watch pods");
        requests
    };
    assert_eq!(without_watches(&load.large), without_watches(&load.small));
    assert!(load.large.bytes <= load.small.bytes * 11 / 10, "{load:#?}");
    assert_eq!(load.searched.count("list nodes"), load.nodes.div_ceil(PAGE), "{load:#?}");
    let more = load.searched.peak_memory.saturating_sub(load.large.peak_memory);
    assert!(more <= SEARCH, "{more} bytes more: {load:#?}");
}
