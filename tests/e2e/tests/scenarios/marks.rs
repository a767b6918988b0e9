//! Marks of a claim (annotation, taint, label) come in one patch and lose none of others' marks.
//!
//! Reason: API semantics.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Taint};
use kube::api::PostParams;
use kube::{Api, ResourceExt as _};
use serde_json::json;
use spillway_e2e::{Stage, ended, spot_notice, until};

const EXCLUDED: &str = "node.kubernetes.io/exclude-from-external-load-balancers";
const CORDON: &str = "node.kubernetes.io/unschedulable";

async fn drained(stage: &Stage) {
    let outcome = stage.lambda.invoke(spot_notice(&stage.node.instance_id, Timestamp::now())).await;
    assert_eq!(ended(&outcome).0, "drained", "{outcome:#?}");
}

#[tokio::test]
async fn claim_keeps_the_marks_of_others() {
    let settings = [("SPILLWAY_TAINTS", "spillway"), ("SPILLWAY_LOAD_BALANCERS", "exclude")];
    let mut stage = Stage::set("others").await.with_settings(&settings).await;
    let theirs = json!([{"key": "team", "value": "shop", "effect": "NoSchedule"}]);
    stage.change_node(&json!({"metadata": {"labels": {EXCLUDED: "karpenter"}}, "spec": {"taints": theirs}})).await;

    drained(&stage).await;

    assert_eq!(stage.node_requests()[..3], ["patch 422", "get 200", "patch 200"]);
    let mut taints = stage.taints().await;
    taints.retain(|taint| !taint.starts_with(CORDON));
    let ours = format!("spillway/spot-interruption=spot-{}:NoSchedule", stage.node.instance_id);
    assert_eq!(taints, ["team=shop:NoSchedule", &ours]);
    assert_eq!(stage.node_now().await.labels()[EXCLUDED], "karpenter");
}

/// Changes a taint on a node over and over, as a controller does: reads, changes, replaces.
struct Writer {
    nodes: Api<Node>,
    node: String,
    writes: AtomicUsize,
    is_over: AtomicBool,
}

impl Writer {
    const KEY: &'static str = "writer";

    /// Counts reads that did not find the last written taint.
    async fn write(&self) -> usize {
        let (mut left, mut wrong) = (None, 0);
        while !self.is_over.load(Ordering::Relaxed) {
            let mut node = self.nodes.get(&self.node).await.expect("the node exists");
            let taints = node.spec.get_or_insert_default().taints.get_or_insert_default();
            let found = taints.iter().find(|taint| taint.key == Self::KEY).cloned();
            wrong += usize::from(found != left);
            taints.retain(|taint| taint.key != Self::KEY);
            // No taint at times, so that the list may be empty.
            let writes = self.writes.load(Ordering::Relaxed);
            let next = (!writes.is_multiple_of(8)).then(|| Taint {
                key: Self::KEY.to_owned(),
                value: Some(writes.to_string()),
                effect: "NoSchedule".to_owned(),
                time_added: None,
            });
            taints.extend(next.clone());
            // Fails if another writer was faster.
            if self.nodes.replace(&self.node, &PostParams::default(), &node).await.is_ok() {
                left = next;
                self.writes.fetch_add(1, Ordering::Relaxed);
            }
        }
        wrong
    }

    async fn until_written(&self, times: usize) {
        let wanted = self.writes.load(Ordering::Relaxed) + times;
        until("more writes", async || self.writes.load(Ordering::Relaxed) >= wanted).await;
    }
}

#[tokio::test]
async fn concurrent_writes_of_taints_lose_no_taint() {
    let stage = Stage::set("writer").await.with_settings(&[("SPILLWAY_TAINTS", "spillway")]).await;
    // Time for many writes between the function's read and its patch.
    let proxy = stage.through_proxy().await;
    proxy.set_round_trip(Duration::from_millis(200));
    let writer = Arc::new(Writer {
        nodes: Api::all(stage.client()),
        node: stage.node.name.clone(),
        writes: AtomicUsize::new(0),
        is_over: AtomicBool::new(false),
    });
    let writing = writer.clone();
    let ended = tokio::spawn(async move { writing.write().await });
    writer.until_written(5).await;

    drained(&stage).await;

    writer.until_written(5).await;
    writer.is_over.store(true, Ordering::Relaxed);
    assert_eq!(ended.await.expect("no panic"), 0, "another writer changed the taint");
    let ours = format!("spillway/spot-interruption=spot-{}:NoSchedule", stage.node.instance_id);
    assert!(stage.taints().await.contains(&ours));
}
