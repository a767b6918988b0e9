//! A dry run reports what a drain would do, and changes nothing.
//!
//! Reason: API semantics.

use kube::ResourceExt as _;
use serde_json::{Value, json};
use spillway_bed::audit::Request;
use spillway_bed::pods::{self, PodShape};
use spillway_e2e::{Stage, answer, fates};

const DRY: [(&str, &str); 1] = [("SPILLWAY_DRY_RUN", "true")];

/// State of the node and of its pods that a drain would change.
async fn state(stage: &Stage) -> Value {
    let node = stage.node_now().await;
    let pods = pods::on_node(&stage.client(), &stage.node.name).await.expect("a list");
    let pods = pods.iter().map(|pod| (pod.uid(), &pod.metadata.deletion_timestamp));
    let ours = node.annotations().keys().chain(node.labels().keys()).filter(|key| key.starts_with("spillway/"));
    json!({"spec": node.spec, "ours": ours.collect::<Vec<_>>(), "pods": pods.collect::<Vec<_>>()})
}

fn is_change(request: &Request) -> bool {
    let dry = request.is_eviction() && request.uri.ends_with("?&dryRun=All");
    !dry && !matches!(request.verb.as_str(), "get" | "list" | "watch")
}

async fn assert_unchanged(stage: &mut Stage, before: &Value) {
    assert_eq!(state(stage).await, *before);
    let changed: Vec<_> = stage.requests().into_iter().filter(is_change).collect();
    assert!(changed.is_empty(), "{changed:#?}");
    let calls = stage.aws_calls().await;
    assert!(calls.iter().all(|call| call.contains(":Describe")), "{calls:?}");
}

#[tokio::test]
async fn dry_run_reports_pods_and_changes_nothing() {
    let mut stage = Stage::set("dry-spot").await.with_settings(&DRY).await;
    stage.deploy("web", 3, PodShape::default()).await;
    stage.deploy("free", 2, PodShape::default()).await;
    let do_not_disrupt = json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}});
    stage.deploy("do-not-disrupt", 1, PodShape::default().with(do_not_disrupt)).await;
    let budget = pods::budget(&stage.name, "web", 3);
    pods::create_budget(&stage.client(), &budget, 3).await.expect("the budget counts its pods");
    let before = state(&stage).await;

    let outcome = stage.drain().await;

    let answer = answer(&outcome);
    assert_eq!((&answer["ending"], &answer["dry_run"]), (&json!("ignored"), &json!(true)), "{answer:#}");
    let reason = format!(
        "dry run: would have drained node {}: 2 pods would leave, 4 would be blocked by PodDisruptionBudget \
         dry-spot/web (3), its annotation karpenter.sh/do-not-disrupt=true (1); pods that stay blocked would be deleted \
         in time for their grace period",
        stage.node.name
    );
    assert_eq!(answer["reason"], reason);
    assert_eq!(fates(answer), [("would-be-blocked".to_owned(), 4), ("would-leave".to_owned(), 2)].into());
    let pods = answer["pods"].as_array().expect("pods");
    let of = |app: &str| {
        pods.iter().find(|pod| pod["pod"].as_str().is_some_and(|name| name.contains(app))).expect("the pod's record")
    };
    assert_eq!(of("/web")["answers"], json!({"blocked-by-budget": 1}));
    assert_eq!(of("/web")["blocked_by"], "web");
    assert_eq!(of("/free")["answers"], json!({"would-leave": 1}));
    let annotated = of("/do-not-disrupt");
    assert_eq!((&annotated["answers"], &annotated["evictions"]), (&Value::Null, &json!(0)), "no eviction is tried");
    assert_unchanged(&mut stage, &before).await;
}
