//! Much at once: many pods on a node, many nodes. By count; no clock is judged.
//!
//! Each test has a machine's worth of work, so they take turns.

use std::time::Duration;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Node;
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::json;
use spillway_bed::audit::{AuditLog, Request};
use spillway_bed::gateway::{Answer, Fault, Rule, Which};
use spillway_bed::load::PODS;
use spillway_bed::pods::{self, PodShape};
use spillway_bed::{BedError, NodeOptions, TestNode, World};
use spillway_e2e::{Stage, fates, function, spot_notice, world};
use tokio::sync::{Mutex, MutexGuard};

const SPOT: Duration = Duration::from_secs(120);
/// Nodes in an answer of the search.
const PAGE: usize = 100;
/// Pods that are created at a time.
const CREATED_AT_ONCE: usize = 8;

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

/// Where the machine does nothing else: all events of an end have four seconds.
#[tokio::test]
async fn a_full_node_has_all_its_events_and_its_pods_events_come_after_the_last_eviction() {
    let _turn = turn().await;
    let mut stage = Stage::set("told-full").await.with_settings(&[("SPILLWAY_NODE_EVENTS", "true")]).await;
    put_pods(&stage.world.admin(), &stage.name, &stage.node.name, PODS).await.expect("its pods run");

    let outcome = stage.lambda.invoke(stage.interrupt(SPOT).await).await;

    assert!(outcome.result.is_ok(), "{outcome:#?}");
    let requests = stage.audit.requests().expect("the audit log");
    let claimed = requests.iter().find(|made| made.verb == "patch" && made.resource == "nodes");
    // That a drain has begun is told a second later at the latest, whatever is not answered by then.
    let by_then = claimed.and_then(|claim| claim.done).expect("a claim") + SignedDuration::from_secs(1);
    let last = requests.iter().rfind(|made| made.subresource == "eviction").expect("evictions").received;
    let events: Vec<_> = requests.iter().filter(|made| made.resource == "events").collect();
    let of_pods: Vec<_> = events.iter().filter(|made| made.namespace == stage.name).collect();
    let written = events.iter().filter(|made| made.code == Some(201)).count();
    let all = (events.len(), of_pods.len(), written) == (PODS + 2, PODS, PODS + 2);
    // A machine that stands still for those four seconds costs some of them, and the log says so.
    let no_time = |line: &String| {
        line.contains("Kubernetes events were not written") && line.contains("did not answer before the time was up")
    };
    assert!(all || outcome.logs.iter().any(no_time), "{outcome:#?} {events:#?}");
    assert!(events.iter().all(|made| last < made.received || by_then <= made.received), "{requests:#?}");
    assert!(of_pods.iter().all(|made| last < made.received), "{requests:#?}");
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
    assert!(requests.len() <= 50 * allowed(PODS), "{} requests", requests.len());
    assert_eq!(lambda.process_ids().len(), 50);
}

async fn node_with_pods(world: &World, client: &Client, namespace: &str) -> Result<TestNode, BedError> {
    let node = world.add_node(NodeOptions::default()).await?;
    put_pods(client, namespace, &node.name, PODS).await?;
    Ok(node)
}

/// etcd keeps no version for longer than some minutes.
#[tokio::test]
async fn a_search_whose_next_page_has_been_compacted_begins_again_and_the_node_is_drained_in_time() {
    let _turn = turn().await;
    // Behind a page of others, and of a name that cannot be guessed.
    let named_by_hand = NodeOptions { name: Some("zzz-compacted".to_owned()), ..NodeOptions::default() };
    let mut stage = Stage::set_with("compacted", named_by_hand).await;
    let client = stage.world.admin();
    let nodes = Api::all(client.clone());
    for number in 0..PAGE {
        let node = json!({"metadata": {"name": format!("aaa-compacted-{number}")}});
        let node = serde_json::from_value::<Node>(node).expect("it is one");
        nodes.create(&PostParams::default(), &node).await.expect("it is new");
    }
    put_pods(&client, &stage.name, &stage.node.name, 2).await.expect("its pods run");
    let gateway = stage.through_gateway().await;
    gateway.rules().add(Rule::new("list nodes", Which::Nth(2), Fault::Answer(Answer::kubernetes(410))));

    let outcome = stage.lambda.invoke(spot_notice(&stage.node.instance_id, Timestamp::now())).await;

    let answer = outcome.result.as_ref().expect("it drains");
    assert_eq!((&answer["ending"], fates(answer)["clean"]), (&"drained".into(), 2), "{outcome:#?}");
    let requests = stage.audit.requests().expect("the audit log");
    let lists: Vec<_> = requests.iter().filter(|made| made.resource == "nodes" && made.verb == "list").collect();
    let first_pages = lists.iter().filter(|made| !made.uri.contains("continue=")).count();
    assert_eq!((first_pages, lists.len() > 2), (2, true), "{lists:#?}");
    assert_eq!(evicted(&requests).len(), 2);
}
