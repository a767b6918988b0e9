//! Much at once: many pods on a node, many nodes, objects as large as they may be. By count; no clock is judged.
//!
//! Each test has a machine's worth of work, so they take turns.

use std::fmt::Debug;
use std::time::Duration;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use jiff::Timestamp;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Pod;
use kube::api::WatchParams;
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use spillway_bed::audit::{AuditLog, Request};
use spillway_bed::load::PODS;
use spillway_bed::pods::{self, PodShape};
use spillway_bed::watch::{Objects, until};
use spillway_bed::{BedError, NodeOptions, TestNode, World};
use spillway_e2e::{Stage, ended, fates, function, receipt, spot_notice, world};
use tokio::sync::{Mutex, MutexGuard};

const SPOT: Duration = Duration::from_secs(120);
/// Pods that are created at a time.
const CREATED_AT_ONCE: usize = 8;

/// A quarter of what the function has by default.
const MEMORY: u64 = 64 << 20;
/// Of each kind: those that have finished, and those that a budget blocks. The API server tells of each in one piece when
/// it is deleted, too.
const LARGE_PODS: usize = 30;
const POD_BYTES: usize = 800_000;
const BUDGETS: usize = 300;
const BUDGET_BYTES: usize = 100_000;
const LARGE_AT_ONCE: usize = 4;

async fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::const_new(());
    TURN.lock().await
}

/// Pods that nobody puts back, and that exit after their evictions have been answered.
async fn put_pods(client: &Client, namespace: &str, node: &str, count: usize) -> Result<(), BedError> {
    let shape = PodShape::default().exits_after(Duration::from_secs(1)).bound_to(node);
    let creations = (0..count).map(|number| {
        let pod = pods::bare_pod(namespace, &format!("{node}-{number}"), &shape);
        async move { pods::create(client, &pod).await.map(drop) }
    });
    stream::iter(creations).buffer_unordered(CREATED_AT_ONCE).try_collect::<()>().await?;
    pods::until_running_on(client, node, count).await.map(drop)
}

/// What the API server says of itself.
async fn metrics(world: &World) -> String {
    let metrics = http::Request::get("/metrics").body(Vec::new()).expect("a request");
    world.admin().request_text(metrics).await.expect("the API server's metrics")
}

/// How many of our requests the API server has turned away though there was room for them: they waited for too long.
fn waited_in_vain(metrics: &str) -> usize {
    let ours = metrics.lines().filter(|line| {
        line.starts_with("apiserver_flowcontrol_rejected_requests_total{")
            && line.contains("priority_level=\"spillway\"")
            && !line.contains("reason=\"queue-full\"")
            && !line.contains("reason=\"concurrency-limit\"")
    });
    ours.filter_map(|line| line.rsplit(' ').next()?.parse::<usize>().ok()).sum()
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

/// What a level lends while it is quiet it gets back when the API server calculates again, every ten seconds: too late for the
/// first drain.
#[tokio::test]
async fn the_room_at_the_api_server_is_there_for_the_first_drain_too() {
    let _turn = turn().await;
    let metrics = metrics(world().await).await;
    let seats = |metric: &str| -> f64 {
        let name = format!("apiserver_flowcontrol_{metric}{{priority_level=\"spillway\"}} ");
        let value = metrics.lines().find_map(|line| line.strip_prefix(&name));
        value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {name}"))
    };

    let (nominal, at_least) = (seats("nominal_limit_seats"), seats("lower_limit_seats"));

    assert!(nominal >= 50.0 && (at_least - nominal).abs() < 0.5, "{at_least} of {nominal} seats");
}

#[tokio::test]
async fn fifty_nodes_at_once_are_drained_within_the_window_and_nothing_is_put_off_for_want_of_room() {
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
    let mut evicted = evicted(&requests);
    // One that a slow machine takes a quarter of a minute for is asked for again, and may be granted both times.
    evicted.dedup();
    assert_eq!(evicted, all_pods(&nodes, PODS));
    // By deploy/optional/flow-control.yaml; without it the API server answers many of them with 429. So it answers, whatever the
    // room, what has waited for that quarter of a minute.
    let put_off = requests.iter().filter(|request| request.code == Some(429)).count();
    let in_vain = waited_in_vain(&metrics(world).await);
    assert!(put_off <= in_vain, "{put_off} of {} requests, {in_vain} of them had waited", requests.len());
    // A loaded machine repeats evictions; the exact bound is that of one node of 300 pods.
    assert!(requests.len() <= 50 * 2 * PODS, "{} requests", requests.len());
    assert_eq!(lambda.process_ids().len(), 50);
}

async fn node_with_pods(world: &World, client: &Client, namespace: &str) -> Result<TestNode, BedError> {
    let node = world.add_node(NodeOptions::default()).await?;
    put_pods(client, namespace, &node.name, PODS).await?;
    Ok(node)
}

fn large() -> PodShape {
    let env = json!([{"name": "LARGE", "value": "x".repeat(POD_BYTES - 200_000)}]);
    PodShape::default().with(json!({
        "metadata": {"annotations": {"large": "y".repeat(200_000)}},
        "spec": {"containers": [{"name": "main", "image": "example.test/main", "env": env}]},
    }))
}

async fn create<K>(stage: &Stage, objects: impl Iterator<Item = K>)
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + Serialize + DeserializeOwned,
{
    let client = stage.world.admin();
    let creations = objects.map(|object| {
        let client = client.clone();
        async move { pods::create(&client, &object).await.map(drop).expect("it is new") }
    });
    stream::iter(creations).buffer_unordered(LARGE_AT_ONCE).collect::<()>().await;
}

/// Objects nearly as large as etcd takes them: what the function has in memory does not grow with them.
#[tokio::test]
async fn node_of_large_pods_and_budgets_is_drained_within_64_mib() {
    let _turn = turn().await;
    let stage = Stage::set("large-objects").await;
    let (client, name) = (stage.world.admin(), stage.name.as_str());
    let shape = |shape: PodShape| shape.grace(60).exits_after(Duration::from_secs(1)).bound_to(&stage.node.name);
    let (finished, blocked) = (shape(large().completes_after(Duration::ZERO)), shape(large()));
    create(&stage, (0..LARGE_PODS).map(|n| pods::bare_pod(name, &format!("finished-{n}"), &finished))).await;
    let labelled = blocked.with(json!({"metadata": {"labels": {"app": "blocked"}}}));
    create(&stage, (0..LARGE_PODS).map(|n| pods::bare_pod(name, &format!("blocked-{n}"), &labelled))).await;
    create(&stage, std::iter::once(pods::budget(name, "blocked", u32::MAX >> 1))).await;
    let budgets = (0..BUDGETS).map(|n| {
        let mut budget = pods::budget(name, &format!("other-{n}"), 1);
        budget.metadata.annotations = Some([("large".to_owned(), "z".repeat(BUDGET_BYTES))].into());
        budget
    });
    create(&stage, budgets).await;
    pods::until_running_on(&client, &stage.node.name, LARGE_PODS).await.expect("they run");
    let count = i32::try_from(LARGE_PODS).expect("a few");
    pods::until_budget_sees(&client, name, "blocked", count).await.expect("it counts");
    let all = WatchParams::default().fields("status.phase=Succeeded");
    until(
        &Api::<Pod>::namespaced(client, name),
        &all,
        "the others to finish",
        Duration::from_mins(1),
        |pods: &Objects<Pod>| {
            if pods.len() >= LARGE_PODS { Ok(()) } else { Err(format!("{} have", pods.len())) }
        },
    )
    .await
    .expect("they finish");

    // Half of the two minutes is for the budget and half for the deletions: a busy API server takes seconds for each.
    let notice = spot_notice(&stage.node.instance_id, Timestamp::now());
    let outcome = stage.lambda.invoke(notice).await;

    let told = receipt(&outcome);
    let expected = [("clean", LARGE_PODS), ("forced", LARGE_PODS)].map(|(fate, pods)| (fate.to_owned(), pods)).into();
    assert_eq!(fates(&told), expected, "{:?}", ended(&outcome));
    let peak = stage.lambda.peak_memory().expect("it runs");
    assert!(peak <= MEMORY, "{} MiB", peak >> 20);
}
