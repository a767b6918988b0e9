//! Marks of a claim (annotation, taint, label) come in one patch and lose none of others' marks.
//!
//! Reason: API semantics.

use kube::ResourceExt as _;
use serde_json::{Value, json};
use spillway_e2e::{Stage, ended, notice, until};

const EXCLUDED: &str = "node.kubernetes.io/exclude-from-external-load-balancers";
const CORDON: &str = "node.kubernetes.io/unschedulable";

/// Drains the node by a claim whose first patch meets another node than expected.
async fn drain_after_a_refused_patch(stage: &mut Stage) {
    let outcome = stage.lambda.invoke(notice("spot-interruption", &stage.node.instance_id)).await;
    assert_eq!(ended(&outcome).0, "drained", "{outcome:#?}");
    assert_eq!(stage.node_requests()[..3], ["patch 422", "get 200", "patch 200"]);
}

#[tokio::test]
async fn claim_keeps_the_marks_of_others() {
    let settings = [("SPILLWAY_TAINTS", "spillway"), ("SPILLWAY_LOAD_BALANCERS", "exclude")];
    let mut stage = Stage::set("others").await.with_settings(&settings).await;
    let theirs = json!([{"key": "team", "value": "shop", "effect": "NoSchedule"}]);
    stage.change_node(&json!({"metadata": {"labels": {EXCLUDED: "karpenter"}}, "spec": {"taints": theirs}})).await;

    drain_after_a_refused_patch(&mut stage).await;

    let mut taints = stage.taints().await;
    taints.retain(|taint| !taint.starts_with(CORDON));
    let ours = format!("spillway/spot-interruption=spot-interruption-{}:NoSchedule", stage.node.instance_id);
    assert_eq!(taints, ["team=shop:NoSchedule", &ours]);
    assert_eq!(stage.node_now().await.labels()[EXCLUDED], "karpenter");
}

#[tokio::test]
async fn node_without_labels_is_claimed() {
    let mut stage = Stage::set("unlabelled").await;
    // A controller gives each new node two labels, once.
    let labelled = async || stage.node_now().await.labels().contains_key("beta.kubernetes.io/os");
    until("the controller's labels", labelled).await;
    let labels = stage.node_now().await.labels().clone();
    let none: Value = labels.into_keys().map(|label| (label, Value::Null)).collect();
    stage.change_node(&json!({"metadata": {"labels": none}})).await;
    assert_eq!(stage.node_now().await.metadata.labels, None);

    drain_after_a_refused_patch(&mut stage).await;

    assert!(stage.is_cordoned().await);
}
