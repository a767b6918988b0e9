//! `deploy/optional/admission-policy.yaml` and `disruption-target.yaml`, which are on for every scenario: what whoever has got hold
//! of the function's role can change of a node, and of a pod.
//!
//! Reason: admission.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Patch, PatchParams};
use kube::core::Request;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use spillway_bed::pods::{self, PodShape};
use spillway_e2e::Stage;
use tokio::time::{sleep, timeout};

/// Patches the stage's node as one of the group `spillway` that is not the function.
async fn patch(stage: &Stage, change: &Value) -> Result<Node, kube::Error> {
    patch_with(stage, change, &PatchParams::default()).await
}

async fn patch_with(stage: &Stage, change: &Value, parameters: &PatchParams) -> Result<Node, kube::Error> {
    let nodes = Request::new("/api/v1/nodes");
    as_the_thief(stage, nodes.patch(&stage.node.name, parameters, &Patch::Merge(change)).expect("a request")).await
}

/// Patches a pod's status likewise.
async fn patch_pod(stage: &Stage, pod: &str, change: &Value, dry_run: bool) -> Result<Pod, kube::Error> {
    let pods = Request::new(format!("/api/v1/namespaces/{}/pods", stage.name));
    let parameters = PatchParams { dry_run, ..PatchParams::default() };
    let request = pods.patch_subresource("status", pod, &parameters, &Patch::Strategic(change)).expect("a request");
    as_the_thief(stage, request).await
}

async fn as_the_thief<K: DeserializeOwned>(
    stage: &Stage,
    mut request: http::Request<Vec<u8>>,
) -> Result<K, kube::Error> {
    for (header, value) in [("impersonate-user", "thief"), ("impersonate-group", "spillway")] {
        request.headers_mut().insert(header, value.parse().expect("a value"));
    }
    stage.world.admin().request(request).await
}

/// The API server's admission hears of a policy a moment after it was applied: waits until what it forbids is refused.
async fn until_in_force(stage: &Stage) {
    let dry_run = PatchParams { dry_run: true, ..PatchParams::default() };
    let forbidden = json!({"metadata": {"labels": {"a": "stranger's"}}});
    let refused = async {
        while patch_with(stage, &forbidden, &dry_run).await.is_ok() {
            sleep(Duration::from_millis(100)).await;
        }
    };
    timeout(Duration::from_mins(1), refused).await.expect("the policy comes into force");
}

#[tokio::test]
async fn of_a_node_the_group_can_change_what_a_drain_changes_and_nothing_else() {
    let stage = Stage::set("admission").await;
    until_in_force(&stage).await;
    let theirs = json!({"key": "dedicated", "value": "shop", "effect": "NoSchedule"});
    let metadata = json!({"labels": {"team": "shop"}, "annotations": {"of": "others"}});
    stage.change_node(&json!({"metadata": metadata, "spec": {"taints": [theirs]}})).await;
    let unreachable = json!({"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"});
    let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": "nobody", "uid": "u"});
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
        let refused = patch(&stage, &change).await.expect_err("it is refused").to_string();
        assert!(refused.contains("ValidatingAdmissionPolicy 'spillway'") && refused.contains(only), "{refused}");
    }

    let ours = json!({"key": "spillway/spot-interruption", "effect": "NoSchedule"});
    let label = "node.kubernetes.io/exclude-from-external-load-balancers";
    let claimed = json!({
        "metadata": {"annotations": {"spillway/claim": "{}"}, "labels": {label: "spillway"}},
        "spec": {"taints": [theirs, ours]},
    });
    patch(&stage, &claimed).await.expect("a claim");
    let given_back = json!({
        "metadata": {"annotations": {"spillway/claim": null}, "labels": {label: null}},
        "spec": {"taints": [theirs]},
    });
    patch(&stage, &given_back).await.expect("it is given back");
    // Apart: at a cordon a controller puts a taint of its own beside them, in a moment that nobody knows.
    for unschedulable in [json!(true), json!(null)] {
        patch(&stage, &json!({"spec": {"unschedulable": unschedulable}})).await.expect("a cordon");
    }
}

#[tokio::test]
async fn of_a_pods_status_the_group_can_set_one_condition_and_nothing_else() {
    let stage = Stage::set("admission-pods").await;
    let client = stage.world.admin();
    pods::create(&client, &pods::bare_pod(&stage.name, "web", &PodShape::default().bound_to(&stage.node.name)))
        .await
        .expect("a pod");
    pods::until_running_of(&client, &stage.name, "web", 1).await.expect("it runs");
    let conditions = |conditions: Value| json!({"status": {"conditions": conditions}});
    let ours = json!({"type": "DisruptionTarget", "status": "True", "reason": "DeletionBySpillway"});
    let failed = json!({"status": {"phase": "Failed", "conditions": [ours]}});
    let in_force = async {
        while patch_pod(&stage, "web", &failed, true).await.is_ok() {
            sleep(Duration::from_millis(100)).await;
        }
    };
    timeout(Duration::from_mins(1), in_force).await.expect("the policy comes into force");
    for (change, only) in [
        (failed, "status"),
        (
            json!({"status": {"podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}, {"$patch": "replace"}], "conditions": [ours]}}),
            "status",
        ),
        (json!({"status": {"containerStatuses": null, "conditions": [ours]}}), "status"),
        (conditions(json!([ours, {"type": "Ready", "status": "False"}])), "conditions"),
        (conditions(json!([{"type": "example.test/mine", "status": "True"}])), "conditions"),
        (
            conditions(json!([{"type": "DisruptionTarget", "status": "False", "reason": "DeletionBySpillway"}])),
            "conditions",
        ),
        (
            conditions(json!([{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}])),
            "conditions",
        ),
        (json!({"metadata": {"labels": {"app": "mine"}}, "status": {"conditions": [ours]}}), "labels"),
        (json!({"metadata": {"annotations": {"a": "mine"}}, "status": {"conditions": [ours]}}), "annotations"),
        (json!({"metadata": {"finalizers": ["thief/for-ever"]}, "status": {"conditions": [ours]}}), "finalizers"),
    ] {
        let refused = patch_pod(&stage, "web", &change, false).await.expect_err("it is refused").to_string();
        assert!(refused.contains("'spillway-disruption-target'") && refused.contains(only), "{change}: {refused}");
    }

    patch_pod(&stage, "web", &conditions(json!([ours])), false).await.expect("as a drain does");
}
