//! Adds the out-of-service taint to a node.

use json_patch::Patch;
use k8s_openapi::api::core::v1::Node;

use super::patch::Operations;
use super::taint;

/// Returns the patch that adds the out-of-service taint. `None`: the node already has the taint.
pub fn tainting(node: &Node) -> Option<Patch> {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default();
    let taint = Some(taint::out_of_service()).filter(|taint| taint::fits(taint, taints))?;
    let mut patch = Operations::default();
    // The patch fails if the node has changed since the read, for example is Ready again.
    patch.test(&["metadata", "resourceVersion"], node.metadata.resource_version.clone());
    patch.add_taint(&taint, taints);
    Some(patch.done())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn patch(taints: &Value) -> Value {
        let node = json!({"metadata": {"name": "n-1", "resourceVersion": "7"}, "spec": {"taints": taints}});
        json!(tainting(&serde_json::from_value(node).unwrap()))
    }

    #[test]
    fn taint_is_added_once_to_an_unchanged_node() {
        let taint = json!({"key": "node.kubernetes.io/out-of-service", "value": "spillway", "effect": "NoExecute"});
        let unchanged = json!({"op": "test", "path": "/metadata/resourceVersion", "value": "7"});
        let unreachable = json!({"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"});
        let added = |path: &str, value: Value| json!([unchanged, {"op": "add", "path": path, "value": value}]);
        assert_eq!(patch(&json!([unreachable])), added("/spec/taints/-", taint.clone()));
        assert_eq!(patch(&json!([])), added("/spec/taints", json!([taint])));
        let foreign =
            json!({"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"});
        assert_eq!(patch(&json!([foreign])), Value::Null);
    }
}
