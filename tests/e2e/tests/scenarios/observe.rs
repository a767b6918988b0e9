//! Nodes that Karpenter or EKS drain: with `observe` their drains are watched and get a receipt, and nothing is written.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, EvictParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use spillway_bed::NodeOptions;
use spillway_bed::audit::Request;
use spillway_bed::aws::Hook;
use spillway_bed::pods::{self, PodShape};
use spillway_e2e::{Stage, fates, receipt, spot_notice, world};

const WAIT: Duration = Duration::from_mins(1);

/// A stage whose instance has that tag, with that setting. EKS' nodes are in a group with EKS' hook, Karpenter's in none.
async fn stage(name: &str, tag: &str, setting: &str) -> Stage {
    let group = (setting == "SPILLWAY_MANAGED_NODE_GROUPS").then(|| name.to_owned());
    if group.is_some() {
        let hook = Hook::terminate("Terminate-LC-Hook");
        world().await.aws_side().put_tagged_group(name, &[hook], &[]).await.expect("the group is new");
    }
    let tags = [(tag.to_owned(), name.to_owned())].into();
    let options = NodeOptions { tags, spot: true, group, ..NodeOptions::default() };
    Stage::set_with(name, options).await.with_settings(&[(setting, "observe")]).await
}

/// Waits until the function watches the node's pods and, if there are any, their budgets.
async fn until_watched(stage: &Stage, resource: &str) {
    let watches = |requests: &[Request]| {
        requests.iter().any(|request| request.verb == "watch" && request.resource == resource && request.code.is_some())
    };
    stage.audit.clone().wait_until(&format!("a watch of {resource}"), WAIT, watches).await.expect("it watches");
}

/// Does what Karpenter and EKS do: taints the node, then evicts the pods of that app.
async fn drain_as_somebody_else(stage: &Stage, app: &str) {
    let taint = json!([{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]);
    stage.change_node(&json!({"spec": {"taints": taint}})).await;
    for pod in pods::on_node(&stage.world.admin(), &stage.node.name).await.expect("a list") {
        if pod.labels().get("app").is_some_and(|of| of == app) {
            let api = Api::<Pod>::namespaced(stage.world.admin(), &stage.name);
            api.evict(&pod.name_any(), &EvictParams::default()).await.expect("it is evicted");
        }
    }
}

/// That no request of the function changes anything, not even as a dry run.
fn assert_read_only(stage: &mut Stage) {
    let requests = stage.audit.requests().expect("the audit log");
    assert!(!requests.is_empty());
    let writes: Vec<_> =
        requests.iter().filter(|request| !["get", "list", "watch"].contains(&request.verb.as_str())).collect();
    assert!(writes.is_empty(), "{writes:#?}");
}

#[tokio::test]
async fn karpenters_drain_of_a_spot_node_gets_a_receipt_with_what_left_what_blocked_and_what_was_lost() {
    let mut stage = stage("observed-spot", "karpenter.sh/nodepool", "SPILLWAY_KARPENTER").await;
    stage.change_node(&json!({"metadata": {"labels": {"karpenter.sh/nodepool": "observed-spot"}}})).await;
    stage.deploy("web", 2, PodShape::default().exits_after(Duration::from_secs(1))).await;
    stage.deploy("db", 1, PodShape::default()).await;
    let client = stage.world.admin();
    pods::create(&client, &pods::budget(&stage.name, "db", 1)).await.expect("it is created");
    pods::until_budget_sees(&client, &stage.name, "db", 1).await.expect("it counts");
    // Late, so that the test need not wait for two minutes.
    let event = spot_notice(&stage.node.instance_id, Timestamp::now() - SignedDuration::from_secs(85));

    let (outcome, ()) = tokio::join!(stage.notify(&event), async {
        until_watched(&stage, "poddisruptionbudgets").await;
        drain_as_somebody_else(&stage, "web").await;
    });

    let receipt = receipt(&outcome);
    assert_eq!((&receipt["ending"], &receipt["decision"]), (&json!("done"), &json!("observe")), "{receipt:#}");
    assert_eq!(fates(&receipt), [("clean".to_owned(), 2), ("lost".to_owned(), 1)].into(), "{receipt:#}");
    for pod in receipt["pods"].as_array().expect("pods") {
        let of_web = pod["fate"] == "clean";
        assert_eq!((pod["gone_ms"].is_i64(), pod["accepted_ms"].is_i64()), (of_web, of_web), "{pod:#}");
        assert_eq!(pod["blocked_by"], if of_web { Value::Null } else { json!("db") });
        assert_eq!(pod["evictions"], 0, "{pod:#}");
    }
    let reason = receipt["reason"].as_str().expect("a text");
    let begin =
        format!("watched node {}, which Karpenter drains: 2 of 3 pods had gone; still there: ", stage.node.name);
    assert!(reason.starts_with(&begin) && reason.ends_with("PodDisruptionBudget db blocked it"), "{reason}");
    let [blocked] = &stage.told("Spillway Drain Blocked").await[..] else { panic!("it is told once") };
    let told = blocked["reason"].as_str().expect("a text");
    assert!(told.ends_with("PodDisruptionBudget db blocks it and nothing forces it to leave"), "{told}");
    assert_eq!(stage.told("Spillway Receipt").await.len(), 1);
    assert_read_only(&mut stage);
    assert!(!stage.is_cordoned().await && !stage.node_now().await.annotations().contains_key("spillway/claim"));
}

#[tokio::test]
async fn a_drain_of_eks_that_its_own_hook_holds_is_watched_and_the_hook_is_left_to_eks() {
    let mut stage = stage("observed-hook", "eks:nodegroup-name", "SPILLWAY_MANAGED_NODE_GROUPS").await;
    stage.deploy("web", 2, PodShape::default().exits_after(Duration::from_secs(1))).await;
    let event = stage.terminate().await;

    let (outcome, ()) = tokio::join!(stage.lambda.invoke(&event), async {
        until_watched(&stage, "pods").await;
        drain_as_somebody_else(&stage, "web").await;
    });

    let receipt = receipt(&outcome);
    assert_eq!((&receipt["ending"], &receipt["decision"]), (&json!("done"), &json!("observe")), "{receipt:#}");
    let reason = format!("watched node {}, which EKS drains: 2 of 2 pods had gone", stage.node.name);
    assert_eq!((&receipt["reason"], &receipt["hook"]["state"]), (&json!(reason), &json!("left")), "{receipt:#}");
    let instance = stage.world.aws_side().instance(&stage.node.instance_id).await.expect("it is known");
    assert_eq!((instance.actions[0].heartbeats, &instance.actions[0].result), (0, &None));
    assert_read_only(&mut stage);
}

#[tokio::test]
async fn a_node_that_is_deleted_before_its_pods_have_gone_ends_the_watch_at_once() {
    let mut stage = stage("observed-deleted", "karpenter.sh/nodepool", "SPILLWAY_KARPENTER").await;
    stage.deploy("web", 1, PodShape::default()).await;
    let event = stage.interrupt(Duration::from_secs(120)).await;

    let (outcome, ()) = tokio::join!(stage.lambda.invoke(&event), async {
        until_watched(&stage, "nodes").await;
        let nodes = Api::<Node>::all(stage.world.admin());
        nodes.delete(&stage.node.name, &DeleteParams::default()).await.expect("it is deleted");
    });

    let receipt = receipt(&outcome);
    assert_eq!(receipt["ending"], "done", "{receipt:#}");
    let reason = receipt["reason"].as_str().expect("a text");
    assert!(reason.contains("0 of 1 pod had gone when it was deleted; still there: "), "{reason}");
    assert_eq!(fates(&receipt)["lost"], 1);
    assert_read_only(&mut stage);
}
