//! `deploy/optional/admission-policy.yaml` and `disruption-target.yaml`: the changes of a node and of a pod that a stolen role of
//! the function can make. Both are applied for every scenario.
//!
//! Reason: admission.

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Patch, PatchParams};
use kube::core::Request;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use spillway_bed::pods::{self, PodShape};
use spillway_e2e::{Stage, until};

/// Patches the node as another user of the group `spillway`.
async fn patch(stage: &Stage, change: &Value, dry_run: bool) -> Result<Node, kube::Error> {
    let parameters = PatchParams { dry_run, ..PatchParams::default() };
    let request = Request::new("/api/v1/nodes").patch(&stage.node.name, &parameters, &Patch::Merge(change));
    send_as_thief(stage, request.expect("a request")).await
}

/// Patches a pod's status as another user of the group `spillway`.
async fn patch_pod(stage: &Stage, pod: &str, change: &Value, dry_run: bool) -> Result<Pod, kube::Error> {
    let pods = Request::new(format!("/api/v1/namespaces/{}/pods", stage.name));
    let parameters = PatchParams { dry_run, ..PatchParams::default() };
    let request = pods.patch_subresource("status", pod, &parameters, &Patch::Strategic(change)).expect("a request");
    send_as_thief(stage, request).await
}

async fn send_as_thief<K: DeserializeOwned>(
    stage: &Stage,
    mut request: http::Request<Vec<u8>>,
) -> Result<K, kube::Error> {
    for (header, value) in [("impersonate-user", "thief"), ("impersonate-group", "spillway")] {
        request.headers_mut().insert(header, value.parse().expect("a value"));
    }
    stage.client().request(request).await
}

#[tokio::test]
async fn group_can_change_only_what_a_drain_changes_of_a_node() {
    let stage = Stage::set("admission").await;
    let forbidden = json!({"metadata": {"labels": {"a": "stranger's"}}});
    until("the policy", async || patch(&stage, &forbidden, true).await.is_err()).await;
    let theirs = json!({"key": "dedicated", "value": "shop", "effect": "NoSchedule"});
    let metadata = json!({"labels": {"team": "shop"}, "annotations": {"of": "others"}});
    stage.change_node(&json!({"metadata": metadata, "spec": {"taints": [theirs]}})).await;
    let unreachable = json!({"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"});
    let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": "none", "uid": "u"});
    for (change, only) in [
        (json!({"spec": {"taints": null}}), "taints"),
        (json!({"spec": {"taints": [theirs, unreachable]}}), "taints"),
        (json!({"metadata": {"labels": {"team": "kitchen"}}}), "labels"),
        (json!({"metadata": {"labels": {"team": null}}}), "labels"),
        (json!({"metadata": {"labels": {"node-restriction.kubernetes.io/x": "y"}}}), "labels"),
        (json!({"metadata": {"annotations": {"of": null}}}), "annotations"),
        (json!({"metadata": {"annotations": {"another": "x"}}}), "annotations"),
        (json!({"metadata": {"ownerReferences": [owner]}}), "owners"),
        (json!({"metadata": {"finalizers": ["thief/for-ever"]}}), "finalizers"),
    ] {
        let refused = patch(&stage, &change, false).await.expect_err("a refusal").to_string();
        assert!(refused.contains("ValidatingAdmissionPolicy 'spillway'") && refused.contains(only), "{refused}");
    }

    let ours = json!({"key": "spillway/spot-interruption", "effect": "NoSchedule"});
    let label = "node.kubernetes.io/exclude-from-external-load-balancers";
    let claimed = json!({
        "metadata": {"annotations": {"spillway/claim": "{}"}, "labels": {label: "spillway"}},
        "spec": {"taints": [theirs, ours]},
    });
    let uncordoned = json!({
        "metadata": {"annotations": {"spillway/claim": null}, "labels": {label: null}},
        "spec": {"taints": [theirs]},
    });
    // Cordons apart: after a cordon a controller adds a taint of its own at any moment.
    let cordons = [true.into(), Value::Null].map(|unschedulable| json!({"spec": {"unschedulable": unschedulable}}));
    for change in [claimed, uncordoned].iter().chain(&cordons) {
        patch(&stage, change, false).await.expect("a change of a drain");
    }
}

#[tokio::test]
async fn group_can_set_only_one_condition_of_a_pod() {
    let stage = Stage::set("admission-pods").await;
    let shape = PodShape::default().bound_to(&stage.node.name);
    pods::create(&stage.client(), &pods::bare_pod(&stage.name, "web", &shape)).await.expect("a pod");
    pods::until_running_of(&stage.client(), &stage.name, "web", 1).await.expect("the pod runs");
    let conditions = |conditions: Value| json!({"status": {"conditions": conditions}});
    let target = |status: &str, reason: &str| json!({"type": "DisruptionTarget", "status": status, "reason": reason});
    let ours = target("True", "DeletionBySpillway");
    let failed = json!({"status": {"phase": "Failed", "conditions": [ours]}});
    until("the policy", async || patch_pod(&stage, "web", &failed, true).await.is_err()).await;
    let ips = json!({"podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}, {"$patch": "replace"}], "conditions": [ours]});
    for (change, only) in [
        (failed, "status"),
        (json!({"status": ips}), "status"),
        (json!({"status": {"containerStatuses": null, "conditions": [ours]}}), "status"),
        (conditions(json!([ours, {"type": "Ready", "status": "False"}])), "conditions"),
        (conditions(json!([{"type": "example.test/mine", "status": "True"}])), "conditions"),
        (conditions(json!([target("False", "DeletionBySpillway")])), "conditions"),
        (conditions(json!([target("True", "PreemptionByScheduler")])), "conditions"),
        (json!({"metadata": {"labels": {"app": "mine"}}, "status": {"conditions": [ours]}}), "labels"),
        (json!({"metadata": {"annotations": {"a": "mine"}}, "status": {"conditions": [ours]}}), "annotations"),
        (json!({"metadata": {"finalizers": ["thief/for-ever"]}, "status": {"conditions": [ours]}}), "finalizers"),
    ] {
        let refused = patch_pod(&stage, "web", &change, false).await.expect_err("a refusal").to_string();
        assert!(refused.contains("'spillway-disruption-target'") && refused.contains(only), "{change}: {refused}");
    }

    patch_pod(&stage, "web", &conditions(json!([ours])), false).await.expect("the condition of a drain");
}
