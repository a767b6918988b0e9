//! Many pods on a node, many nodes, and large objects. By count, without clocks.
//!
//! Each test loads the whole machine, so they take turns.

use std::time::Duration;

use futures_util::future::join_all;
use futures_util::stream::{self, StreamExt as _};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::WatchParams;
use serde_json::json;
use spillway_bed::audit::{AuditLog, Request};
use spillway_bed::pods::{self, PodShape};
use spillway_bed::watch::{Objects, until};
use spillway_bed::{NodeOptions, TestNode, World};
use spillway_e2e::{Stage, WAIT, answer, assert_drained, fates, function, receipt, spot_notice, user, world};
use tokio::sync::{Mutex, MutexGuard};

/// Nodes drained at once, and pods of each.
const NODES: usize = 50;
const PODS: usize = 20;
/// A quarter of the function's memory.
const MEMORY: u64 = 64 << 20;
/// Finished pods, and as many blocked ones. A deletion's watch event has the whole pod, too.
const LARGE_PODS: usize = 30;
const POD_BYTES: usize = 800_000;
const BUDGETS: usize = 300;
const BUDGET_BYTES: usize = 100_000;

async fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::const_new(());
    TURN.lock().await
}

/// Pods that exit a second after their evictions.
fn quick() -> PodShape {
    PodShape::default().exits_after(Duration::from_secs(1))
}

/// Names of the pods with a granted eviction, once for each grant.
fn evicted(requests: &[Request]) -> Vec<&str> {
    let mut names: Vec<&str> = requests.iter().filter(|r| r.is_granted_eviction()).map(|r| &*r.name).collect();
    names.sort_unstable();
    names
}

/// Names of all pods of some nodes.
fn all_pods(nodes: &[TestNode], pods: usize) -> Vec<String> {
    let names = nodes.iter().flat_map(|node| (0..pods).map(|number| format!("{}-{number}", node.name)));
    let mut names: Vec<String> = names.collect();
    names.sort_unstable();
    names
}

async fn metrics(world: &World) -> String {
    let metrics = http::Request::get("/metrics").body(Vec::new()).expect("a request");
    world.admin().request_text(metrics).await.expect("the API server's metrics")
}

/// Sum of a metric's samples of Spillway's priority level with this label.
fn flow_control(metrics: &str, metric: &str, label: &str) -> f64 {
    let prefix = format!("apiserver_flowcontrol_{metric}{{");
    let of_level = |line: &&str| line.starts_with(&prefix) && line.contains("priority_level=\"spillway\"");
    let samples = metrics.lines().filter(of_level).filter(|line| line.contains(label));
    samples.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}

#[tokio::test]
async fn node_of_three_hundred_pods_takes_one_eviction_of_each() {
    let _turn = turn().await;
    let mut stage = Stage::set_with("hundreds", NodeOptions { pods: 300, ..NodeOptions::spot() }).await;
    let (name, node) = (&stage.name, &stage.node.name);
    pods::fill_node(&stage.client(), name, node, node, 300, &quick()).await.expect("the pods run");

    let outcome = stage.drain().await;

    assert_drained(&outcome, 300);
    let requests = stage.requests();
    assert_eq!(evicted(&requests), all_pods(&[stage.node.clone()], 300));
    // 1.1 requests of each pod, and 4 others.
    assert!(requests.len() <= 330 + 4, "{} requests", requests.len());
}

/// With deploy/optional/flow-control.yaml. Without it the API server answers many requests with 429.
#[tokio::test]
async fn fifty_nodes_are_drained_at_once_without_a_full_queue() {
    let _turn = turn().await;
    let world = world().await;
    let client = world.admin();
    pods::create_namespace(&client, "fleet").await.expect("the namespace is new");
    let nodes = stream::iter(0..NODES).map(async |_| {
        let node = world.add_node(NodeOptions::default()).await.expect("the node joins");
        pods::fill_node(&client, "fleet", &node.name, &node.name, PODS, &quick()).await.expect("the pods run");
        node
    });
    let nodes: Vec<TestNode> = nodes.buffer_unordered(4).collect().await;
    let lambda = function(world, "fleet", &[]).await;
    let mut audit = AuditLog::of_user(&world.audit_log, &user("fleet"));

    let drains = nodes.iter().map(|node| lambda.invoke(spot_notice(&node.instance_id, Timestamp::now())));
    let outcomes = join_all(drains).await;

    for outcome in &outcomes {
        assert_drained(outcome, PODS);
    }
    let requests = audit.requests().expect("the audit log");
    let mut evicted = evicted(&requests);
    // A request without an answer for a quarter of a minute is repeated, and may be granted both times.
    evicted.dedup();
    assert_eq!(evicted, all_pods(&nodes, PODS));
    let metrics = metrics(world).await;
    assert!(flow_control(&metrics, "dispatched_requests_total", "") > 0.0, "the priority level has requests");
    // A request may also be cancelled in the queue.
    for reason in ["reason=\"queue-full\"", "reason=\"concurrency-limit\""] {
        assert!(flow_control(&metrics, "rejected_requests_total", reason) < 0.5, "{metrics}");
    }
    // A loaded machine repeats evictions; the exact bound is that of one node of 300 pods.
    assert!(requests.len() <= NODES * 2 * PODS, "{} requests", requests.len());
    // Each notice has a process of its own, as on Lambda.
    assert_eq!(lambda.process_ids().len(), NODES);
}

/// Objects of nearly etcd's limit: the function's memory does not grow with them.
#[tokio::test]
async fn node_of_large_pods_and_budgets_is_drained_within_64_mib() {
    let _turn = turn().await;
    let stage = Stage::set("large-objects").await;
    let (client, name) = (stage.client(), stage.name.as_str());
    let env = json!([{"name": "LARGE", "value": "x".repeat(POD_BYTES - 200_000)}]);
    let large = quick().grace(60).bound_to(&stage.node.name);
    let large = large.with(json!({
        "metadata": {"annotations": {"large": "y".repeat(200_000)}},
        "spec": {"containers": [{"name": "main", "image": "example.test/main", "env": env}]},
    }));
    let finished = large.clone().completes_after(Duration::ZERO);
    let blocked = large.with(json!({"metadata": {"labels": {"app": "blocked"}}}));
    let large_pods = |app: &'static str, shape: PodShape| {
        (0..LARGE_PODS).map(move |n| pods::bare_pod(name, &format!("{app}-{n}"), &shape))
    };
    let all = large_pods("finished", finished).chain(large_pods("blocked", blocked));
    pods::create_all(&Api::namespaced(client.clone(), name), all).await.expect("the pods are new");
    let budgets = (0..BUDGETS).map(|n| {
        let mut budget = pods::budget(name, &format!("other-{n}"), 1);
        budget.metadata.annotations = Some([("large".to_owned(), "z".repeat(BUDGET_BYTES))].into());
        budget
    });
    pods::create_all(&Api::namespaced(client.clone(), name), budgets).await.expect("the budgets are new");
    pods::until_running_on(&client, &stage.node.name, LARGE_PODS).await.expect("the blocked pods run");
    let budget = pods::budget(name, "blocked", u32::MAX >> 1);
    pods::create_budget(&client, &budget, LARGE_PODS).await.expect("the budget counts its pods");
    let succeeded = WatchParams::default().fields("status.phase=Succeeded");
    let all = |pods: &Objects<Pod>| if pods.len() >= LARGE_PODS { Ok(()) } else { Err(format!("{}", pods.len())) };
    let pods = Api::<Pod>::namespaced(client, name);
    until(&pods, &succeeded, "the other pods to finish", WAIT, all).await.expect("the other pods finish");

    // Half of the two minutes is the budget's and half the deletions': a busy API server takes seconds for each.
    let outcome = stage.lambda.invoke(spot_notice(&stage.node.instance_id, Timestamp::now())).await;

    let expected = [("clean", LARGE_PODS), ("forced", LARGE_PODS)].map(|(fate, pods)| (fate.to_owned(), pods)).into();
    assert_eq!(fates(&receipt(&outcome)), expected, "{:?}", answer(&outcome)["reason"]);
    let peak = stage.lambda.peak_memory().expect("the process lives");
    assert!(peak <= MEMORY, "{} MiB", peak >> 20);
}
