//! The patch that declares a node out of service.

use json_patch::Patch;
use k8s_openapi::api::core::v1::Node;

use super::patch::Operations;
use super::taint;

/// Adds the taint to those that are there; `None`: it is there, ours or somebody else's.
pub fn tainting(node: &Node) -> Option<Patch> {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default();
    let taint = Some(taint::out_of_service()).filter(|taint| taint::fits(taint, taints))?;
    let mut patch = Operations::default();
    // What was read decides, so nothing may have changed since: a node that is Ready again is not tainted.
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
    fn the_taint_is_added_to_those_that_are_there_and_only_to_the_node_as_it_was_seen() {
        let taint = json!({"key": "node.kubernetes.io/out-of-service", "value": "spillway", "effect": "NoExecute"});
        let seen = json!({"op": "test", "path": "/metadata/resourceVersion", "value": "7"});
        let unreachable = json!({"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"});
        assert_eq!(
            patch(&json!([unreachable])),
            json!([seen, {"op": "add", "path": "/spec/taints/-", "value": taint}])
        );
        assert_eq!(patch(&json!([])), json!([seen, {"op": "add", "path": "/spec/taints", "value": [taint]}]));
    }

    #[test]
    fn somebody_elses_taint_of_the_same_key_is_left_as_it_is() {
        let others =
            json!({"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"});
        assert_eq!(patch(&json!([others])), Value::Null);
    }
}
