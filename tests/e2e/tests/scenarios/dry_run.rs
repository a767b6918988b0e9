//! A dry run: it says what it would have done, and changes nothing, anywhere.
//!
//! Reason: API semantics.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use spillway_bed::audit::Request;
use spillway_bed::aws::Hook;
use spillway_bed::pods::{self, PodShape};
use spillway_e2e::{Stage, fates};

const SPOT: Duration = Duration::from_secs(120);

/// The same stage with a function that is to touch nothing.
async fn dry(stage: Stage, more: &[(&str, &str)]) -> Stage {
    stage.with_settings(&[more, &[("SPILLWAY_DRY_RUN", "true")]].concat()).await
}

/// What of the node and of its pods a drain would change.
async fn as_it_stands(stage: &Stage) -> Value {
    let node = stage.node_now().await;
    let of_node = ListParams::default().fields(&format!("spec.nodeName={}", stage.node.name));
    let pods = Api::<Pod>::namespaced(stage.world.admin(), &stage.name).list(&of_node).await.expect("they are listed");
    let pods = pods.items.iter().map(|pod| (pod.uid(), &pod.metadata.deletion_timestamp));
    let ours = node.annotations().keys().chain(node.labels().keys()).filter(|key| key.starts_with("spillway/"));
    json!({"spec": node.spec, "ours": ours.collect::<Vec<_>>(), "pods": pods.collect::<Vec<_>>()})
}

/// Whether a request can have changed anything.
fn changes(request: &Request) -> bool {
    let dry = request.subresource == "eviction" && request.uri.ends_with("?&dryRun=All");
    !dry && !matches!(request.verb.as_str(), "get" | "list" | "watch")
}

async fn assert_nothing_was_touched(stage: &mut Stage, before: &Value) {
    assert_eq!(as_it_stands(stage).await, *before);
    let changed: Vec<_> = stage.audit.requests().expect("the audit log").into_iter().filter(changes).collect();
    assert!(changed.is_empty(), "{changed:#?}");
    let calls = stage.aws_calls().await;
    assert!(calls.iter().all(|call| call.contains(":Describe")), "{calls:?}");
}

#[tokio::test]
async fn a_dry_run_asks_which_pods_would_go_and_touches_nothing() {
    let mut stage = dry(Stage::set("dry-spot").await, &[]).await;
    let client = stage.world.admin();
    stage.deploy("web", 3, PodShape::default()).await;
    stage.deploy("free", 2, PodShape::default()).await;
    let do_not_disrupt = json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}});
    stage.deploy("do-not-disrupt", 1, PodShape::default().with(do_not_disrupt)).await;
    pods::create(&client, &pods::budget(&stage.name, "web", 3)).await.expect("the budget is new");
    pods::until_budget_sees(&client, &stage.name, "web", 3).await.expect("it counts");
    let before = as_it_stands(&stage).await;

    let outcome = stage.lambda.invoke(stage.interrupt(SPOT).await).await;

    let answer = outcome.result.as_ref().expect("it is no failure");
    assert_eq!((&answer["ending"], &answer["dry_run"]), (&json!("ignored"), &json!(true)), "{answer:#}");
    let reason = format!(
        "dry run: would have drained node {}: 2 pods would leave, 4 would be blocked by PodDisruptionBudget \
         dry-spot/web (3), its annotation karpenter.sh/do-not-disrupt=true (1); pods that stay blocked would be deleted \
         in time for their grace period",
        stage.node.name
    );
    assert_eq!(answer["reason"], reason);
    assert_eq!(fates(answer), [("would-be-blocked".to_owned(), 4), ("would-leave".to_owned(), 2)].into());
    let pods = answer["pods"].as_array().expect("the pods");
    let of = |app: &str| {
        pods.iter().find(|pod| pod["pod"].as_str().is_some_and(|name| name.contains(app))).expect("it is there")
    };
    assert_eq!(of("/web")["answers"], json!({"blocked-by-budget": 1}));
    assert_eq!(of("/web")["blocked_by"], "web");
    assert_eq!(of("/free")["answers"], json!({"would-leave": 1}));
    assert_eq!(
        (&of("/do-not-disrupt")["answers"], &of("/do-not-disrupt")["evictions"]),
        (&Value::Null, &json!(0)),
        "it is not asked for"
    );
    assert_nothing_was_touched(&mut stage, &before).await;
}

/// NTH's dry run completes the hook and sends its heartbeats (F8).
#[tokio::test]
async fn a_dry_run_leaves_the_hook_waiting_and_sends_it_no_heartbeat() {
    let stage = Stage::set_in_group("dry-hook", Hook::terminate("spillway")).await;
    let mut stage = dry(stage, &[]).await;
    stage.deploy("web", 2, PodShape::default()).await;
    let event = stage.terminate().await;
    let before = as_it_stands(&stage).await;

    let outcome = stage.lambda.invoke(event).await;

    let answer = outcome.result.as_ref().expect("it is no failure");
    let reason = format!(
        "dry run: would have drained node {}: 2 pods would leave, 0 would be blocked; its lifecycle hook spillway of group \
         dry-hook is left to its own timeout",
        stage.node.name
    );
    assert_eq!((&answer["reason"], &answer["hook"]["state"]), (&json!(reason), &json!("left")));
    let instance = stage.world.aws_side().instance(&stage.node.instance_id).await.expect("it is known");
    assert_eq!(instance.lifecycle_state.as_deref(), Some("Terminating:Wait"));
    assert_eq!((instance.actions[0].heartbeats, &instance.actions[0].result), (0, &None));
    assert_nothing_was_touched(&mut stage, &before).await;
}
