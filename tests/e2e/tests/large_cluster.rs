//! A large cluster costs a drain the same as a small one; its search and the doctor read page by page, with little more memory. By
//! count, without clocks.
//!
//! The test fills the world, which takes half a minute, so it is the only one of this program.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::ListParams;
use serde_json::{Value, json};
use spillway_bed::audit::{AuditLog, Request};
use spillway_bed::filler::Filler;
use spillway_bed::pods::{self, PodShape};
use spillway_bed::{NodeOptions, World};
use spillway_e2e::{WAIT, answer, function, user, world};

const LARGE: Filler = Filler { nodes: 500, pods: 5_000 };
/// Pods of a drained node.
const PODS: usize = 20;
/// A name that no guess has, and the last of all: the search reads every node.
const LAST_NAME: &str = "zz-named-by-hand";
/// Nodes in a page of the search.
const NODES_PAGE: usize = 100;
/// More memory of the search: 12 MiB. All its answers would take 17 MB, each twice.
const SEARCH: u64 = 12 << 20;
/// Pods in a page of the doctor.
const PODS_PAGE: usize = 250;
/// More memory of the doctor: 24 MiB of pages. All pods, 10 KB each, would take 50 MB.
const DOCTOR: u64 = 24 << 20;

/// Cost of a drain by a cold function.
#[derive(Debug)]
struct Cost {
    /// Count of each request, such as `list nodes` or `create pods/eviction`.
    requests: BTreeMap<String, usize>,
    /// Bytes of the connection to the API server, with TLS.
    bytes: u64,
    peak_memory: u64,
}

async fn cost_of_drain(world: &'static World, name: &str, node: NodeOptions) -> Cost {
    let (client, aws) = (world.admin(), world.aws_side());
    pods::create_namespace(&client, name).await.expect("the namespace is new");
    let node = world.add_node(node).await.expect("the node joins");
    pods::fill_node(&client, name, &node.name, "pod", PODS, &PodShape::default()).await.expect("its pods run");
    let lambda = function(world, name, &[]).await;
    let proxy = world.proxy().expect("a proxy");
    let shown = aws.override_endpoint(lambda.access_key_id(), &world.cluster, Some(&proxy.url()), None).await;
    shown.expect("EKS shows the proxy");
    let mut audit = AuditLog::of_user(&world.audit_log, &user(name));

    let outcome = lambda.invoke(aws.spot_notice(name, &node.instance_id).await.expect("a notice")).await;

    outcome.drained().expect("the node is drained");
    let all = |made: &[Request]| made.iter().filter(|r| r.is_eviction() && r.done.is_some()).count() >= PODS;
    let mut requests = BTreeMap::new();
    for made in audit.wait_until("the evictions", WAIT, all).await.expect("the evictions are logged") {
        let slash = if made.subresource.is_empty() { "" } else { "/" };
        *requests.entry(format!("{} {}{slash}{}", made.verb, made.resource, made.subresource)).or_default() += 1;
    }
    Cost { requests, bytes: proxy.bytes(), peak_memory: lambda.peak_memory().expect("the process lives") }
}

/// The doctor's check of nodes, and its memory.
async fn examine(world: &'static World, name: &str) -> (Value, u64) {
    let lambda = function(world, name, &[]).await;
    let order = json!({"source": "spillway", "detail-type": "Spillway Doctor", "detail": {"cluster": world.cluster}});
    let outcome = lambda.invoke(&order).await;
    let check = answer(&outcome)["checks"].as_array().expect("checks").iter().find(|check| check["id"] == "nodes");
    (check.cloned().expect("the check of nodes"), lambda.peak_memory().expect("the process lives"))
}

#[tokio::test]
async fn large_cluster_costs_a_drain_no_more_and_is_read_by_page() {
    let world = world().await;
    let (_, small_doctor) = examine(world, "doctor-small").await;
    let small = cost_of_drain(world, "load-small", NodeOptions::default()).await;
    LARGE.pour(&world.admin()).await.expect("the filler is new");
    let large = cost_of_drain(world, "load-large", NodeOptions::default()).await;
    let searched = cost_of_drain(world, "load-searched", NodeOptions::named(LAST_NAME)).await;
    let nodes = Api::<Node>::all(world.admin()).list_metadata(&ListParams::default()).await.expect("a list").items;

    // A watch may end and be made again, also with a list, in a cluster of any size.
    let without_watches = |cost: &Cost| {
        let mut requests = cost.requests.clone();
        requests.retain(|request, _| request != "watch pods" && request != "list pods");
        requests
    };
    assert_eq!(without_watches(&large), without_watches(&small));
    let lists = [&small, &large].map(|cost| cost.requests["list pods"]);
    assert!(lists.iter().all(|lists| (1..=3).contains(lists)), "{small:#?} {large:#?}");
    // The number of a watch's events varies by an eighth; a list of the nodes alone would be 25 times as much.
    assert!(large.bytes <= small.bytes * 2, "{small:#?} {large:#?}");
    assert_eq!(searched.requests["list nodes"], nodes.len().div_ceil(NODES_PAGE), "{searched:#?}");
    let more = searched.peak_memory.saturating_sub(large.peak_memory);
    assert!(more <= SEARCH, "{more} bytes more: {searched:#?}");

    let (check, large_doctor) = examine(world, "doctor-large").await;

    let verdict = check["what"].as_str().expect("a sentence");
    assert!(verdict.ends_with("each of them could be drained in two minutes right now"), "{check:#}");
    let more = large_doctor.saturating_sub(small_doctor);
    assert!(more <= DOCTOR, "{more} bytes more than {small_doctor}");
    let requests = AuditLog::of_user(&world.audit_log, &user("doctor-large")).requests().expect("the audit log");
    let pages = requests.iter().filter(|made| made.resource == "pods" && made.uri.contains("fieldSelector"));
    assert_eq!(pages.count(), LARGE.pods.div_ceil(PODS_PAGE));
}
