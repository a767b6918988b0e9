//! The doctor in a large cluster: page by page, and in the same memory. By count; no clock is judged.
//!
//! It makes the world large, so this is the only test in it.

use serde_json::{Value, json};
use spillway_bed::World;
use spillway_bed::audit::AuditLog;
use spillway_bed::filler::Filler;
use spillway_e2e::{function, world};

const LARGE: Filler = Filler { nodes: 500, pods: 5_000 };
/// Objects in a page.
const PAGE: usize = 250;
/// The memory that a large cluster may need more than a small one: some pages, and not its pods, which are 10 KB each:
/// 50 MB.
const MORE: u64 = 24 << 20;

/// What the doctor says of the world's nodes, and the memory that it needed.
async fn examined(world: &'static World, name: &str) -> (Value, u64) {
    let lambda = function(world, name, &[]).await;
    let order = json!({"source": "spillway", "detail-type": "Spillway Doctor", "detail": {"cluster": world.cluster}});
    let report = lambda.invoke(&order).await.result.expect("the doctor answers");
    let check = report["checks"].as_array().expect("checks").iter().find(|check| check["id"] == "nodes");
    (check.cloned().expect("the check of the nodes"), lambda.peak_memory().expect("it runs"))
}

#[tokio::test]
async fn a_large_cluster_is_looked_at_page_by_page_and_needs_hardly_more_memory() {
    let world = world().await;
    let (_, small) = examined(world, "doctor-small").await;
    LARGE.pour(&world.admin()).await.expect("it is poured");

    let (check, large) = examined(world, "doctor-large").await;

    assert_eq!(check["findings"][0]["id"], "bare-pods", "{check:#}");
    assert_eq!(check["findings"][0]["nodes_count"], LARGE.nodes);
    let more = large.saturating_sub(small);
    assert!(more <= MORE, "{more} bytes more than {small}");
    let mut audit = AuditLog::of_user(&world.audit_log, "assumed-role/spillway-drain/doctor-large");
    let requests = audit.requests().expect("the audit log");
    let pages = requests.iter().filter(|made| made.resource == "pods" && made.uri.contains("fieldSelector"));
    assert_eq!(pages.count(), LARGE.pods.div_ceil(PAGE));
}
