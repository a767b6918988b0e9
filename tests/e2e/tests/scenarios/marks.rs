//! What a claim leaves on the node: annotation, taint, label, all in the one patch, and nothing of
//! anybody else's lost.
//!
//! Reason: API semantics.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Taint};
use kube::api::PostParams;
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use spillway_e2e::{Stage, receipt, spot_notice};

const EXCLUDED: &str = "node.kubernetes.io/exclude-from-external-load-balancers";

async fn interrupted(stage: &Stage) -> Value {
    receipt(&stage.lambda.invoke(spot_notice(&stage.node.instance_id, Timestamp::now())).await)
}

/// The taints that are not the cordon's own, as kubectl writes them.
fn taints(node: &Node) -> Vec<String> {
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    let not_the_cordons = taints.filter(|taint| taint.key != "node.kubernetes.io/unschedulable");
    let text = |taint: &Taint| format!("{}={}:{}", taint.key, taint.value.as_deref().unwrap_or_default(), taint.effect);
    not_the_cordons.map(text).collect()
}

#[tokio::test]
async fn what_others_have_put_on_the_node_stays() {
    let settings = [("SPILLWAY_TAINTS", "spillway"), ("SPILLWAY_LOAD_BALANCERS", "exclude")];
    let mut stage = Stage::set("others").await.with_settings(&settings).await;
    let theirs = json!([{"key": "team", "value": "shop", "effect": "NoSchedule"}]);
    stage.change_node(&json!({"metadata": {"labels": {EXCLUDED: "karpenter"}}, "spec": {"taints": theirs}})).await;

    let receipt = interrupted(&stage).await;

    assert_eq!(receipt["ending"], "drained", "{receipt:#}");
    assert_eq!(stage.node_requests()[..3], ["patch 422", "get 200", "patch 200"]);
    let node = stage.node_now().await;
    let ours = format!("spillway/spot-interruption=spot-{}:NoSchedule", stage.node.instance_id);
    assert_eq!(taints(&node), ["team=shop:NoSchedule", &ours]);
    assert_eq!(node.labels()[EXCLUDED], "karpenter");
}

/// Changes its taint on a node over and over, as a controller does: reads, changes, writes what it read.
struct Writer {
    nodes: Api<Node>,
    node: String,
    writes: AtomicUsize,
    is_over: AtomicBool,
}

impl Writer {
    const KEY: &'static str = "writer";

    /// Answers how often it found another taint than it had left, or none where it had left one.
    async fn write(&self) -> usize {
        let (mut left, mut wrong) = (None, 0);
        while !self.is_over.load(Ordering::Relaxed) {
            let mut node = self.nodes.get(&self.node).await.expect("the node is there");
            let taints = node.spec.get_or_insert_default().taints.get_or_insert_default();
            let found = taints.iter().find(|taint| taint.key == Self::KEY).cloned();
            wrong += usize::from(found != left);
            taints.retain(|taint| taint.key != Self::KEY);
            // Now and then it has none, so that the list may be empty.
            let writes = self.writes.load(Ordering::Relaxed);
            let (effect, value) = ("NoSchedule".to_owned(), Some(writes.to_string()));
            let next = (!writes.is_multiple_of(8)).then(|| Taint {
                key: Self::KEY.to_owned(),
                value,
                effect,
                time_added: None,
            });
            taints.extend(next.clone());
            // An error: somebody else was faster. It reads again.
            if self.nodes.replace(&self.node, &PostParams::default(), &node).await.is_ok() {
                left = next;
                self.writes.fetch_add(1, Ordering::Relaxed);
            }
        }
        wrong
    }

    async fn until_written(&self, times: usize) {
        let wanted = self.writes.load(Ordering::Relaxed) + times;
        let written = async {
            while self.writes.load(Ordering::Relaxed) < wanted {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_mins(1), written).await.expect("it writes on");
    }
}

#[tokio::test]
async fn no_taint_is_lost_while_somebody_keeps_writing_taints() {
    let stage = Stage::set("writer").await.with_settings(&[("SPILLWAY_TAINTS", "spillway")]).await;
    // So that much is written between what the function reads and what it writes.
    let proxy = stage.through_proxy().await;
    proxy.set_round_trip(Duration::from_millis(200));
    let writer = Arc::new(Writer {
        nodes: Api::all(stage.world.admin()),
        node: stage.node.name.clone(),
        writes: AtomicUsize::new(0),
        is_over: AtomicBool::new(false),
    });
    let its = writer.clone();
    let ended = tokio::spawn(async move { its.write().await });
    writer.until_written(5).await;

    let receipt = interrupted(&stage).await;

    writer.until_written(5).await;
    writer.is_over.store(true, Ordering::Relaxed);
    assert_eq!(ended.await.expect("no panic"), 0, "somebody else wrote its taint");
    assert_eq!(receipt["ending"], "drained", "{receipt:#}");
    let ours = format!("spillway/spot-interruption=spot-{}:NoSchedule", stage.node.instance_id);
    assert!(taints(&stage.node_now().await).contains(&ours));
}
