//! A large cluster: a drain costs the same, its search and the doctor go page by page, and both need hardly more memory. By count;
//! no clock is judged.
//!
//! It makes the world large, which takes half a minute, so this is one test and the only one in its world.

use serde_json::{Value, json};
use spillway_bed::World;
use spillway_bed::audit::AuditLog;
use spillway_bed::filler::Filler;
use spillway_bed::load::{self, Cost, Load};
use spillway_e2e::{function, world};

const LARGE: Filler = Filler { nodes: 500, pods: 5_000 };
/// Nodes in an answer of the search.
const NODES_PAGE: usize = 100;
/// The memory that the search may need: nodes as they come, and not a cluster: 17 MB, were its answers kept, and each twice.
const SEARCH: u64 = 12 << 20;
/// Pods in a page of the doctor's.
const PODS_PAGE: usize = 250;
/// The memory that the doctor may need more than in a small cluster: some pages, and not all pods, which are 10 KB each: 50 MB.
const DOCTOR: u64 = 24 << 20;

/// What the doctor says of the world's nodes, and the memory that it needed.
async fn examined(world: &'static World, name: &str) -> (Value, u64) {
    let lambda = function(world, name, &[]).await;
    let order = json!({"source": "spillway", "detail-type": "Spillway Doctor", "detail": {"cluster": world.cluster}});
    let report = lambda.invoke(&order).await.result.expect("the doctor answers");
    let check = report["checks"].as_array().expect("checks").iter().find(|check| check["id"] == "nodes");
    (check.cloned().expect("the check of the nodes"), lambda.peak_memory().expect("it runs"))
}

#[tokio::test]
async fn a_large_cluster_costs_a_drain_and_the_doctor_hardly_more_and_both_go_page_by_page() {
    let world = world().await;
    let (_, small) = examined(world, "doctor-small").await;
    let load = load::measure(world, LARGE).await.expect("it drains");
    assert_a_drain_costs_the_same_and_its_search_is_paged(&load);

    let (check, large) = examined(world, "doctor-large").await;

    let verdict = check["what"].as_str().expect("a sentence");
    assert!(verdict.ends_with("each of them could be drained in two minutes right now"), "{check:#}");
    let more = large.saturating_sub(small);
    assert!(more <= DOCTOR, "{more} bytes more than {small}");
    let mut audit = AuditLog::of_user(&world.audit_log, "assumed-role/spillway-drain/doctor-large");
    let requests = audit.requests().expect("the audit log");
    let pages = requests.iter().filter(|made| made.resource == "pods" && made.uri.contains("fieldSelector"));
    assert_eq!(pages.count(), LARGE.pods.div_ceil(PODS_PAGE));
}

fn assert_a_drain_costs_the_same_and_its_search_is_paged(load: &Load) {
    // A watch may end and be made again, and may begin with a list then: that is no cost of the cluster's size.
    let without_looks = |cost: &Cost| {
        let mut requests = cost.requests.clone();
        requests.retain(|request, _| request != "watch pods" && request != "list pods");
        requests
    };
    assert_eq!(without_looks(&load.large), without_looks(&load.small));
    let lists = [&load.small, &load.large].map(|cost| cost.count("list pods"));
    assert!(lists.iter().all(|lists| (1..=3).contains(lists)), "{load:#?}");
    // How often the watch tells of a pod is chance, and was seen to make an eighth more; a list of the cluster's nodes
    // alone would make 25 times as much.
    assert!(load.large.bytes <= load.small.bytes * 2, "{load:#?}");
    assert_eq!(load.searched.count("list nodes"), load.nodes.div_ceil(NODES_PAGE), "{load:#?}");
    let more = load.searched.peak_memory.saturating_sub(load.large.peak_memory);
    assert!(more <= SEARCH, "{more} bytes more: {load:#?}");
}
