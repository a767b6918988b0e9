//! Objects of a scripted API server.

use serde_json::{Value, json};

use super::instance;
use super::script::{Expected, call};
pub(crate) use crate::doubles::scripted::status;

/// Name of the node: the instance id, as EC2 has no DNS name.
pub(crate) const NODE: &str = "i-0123456789abcdef0";
pub(crate) const NODE_PATH: &str = "/api/v1/nodes/i-0123456789abcdef0";

/// Node of the instance: Ready and not cordoned.
pub(crate) fn node() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": NODE, "resourceVersion": "7", "labels": {}, "annotations": {}},
        "spec": {"providerID": instance().provider_id()},
        "status": {"conditions": [{"type": "Ready", "status": "True"}], "nodeInfo": {"bootID": "b-2"}},
    })
}

/// Node with a claim of a notice, event and request.
pub(crate) fn claimed(notice: &str, event: &str, request: &str) -> Value {
    let annotation = json!({"event": event, "request": request, "notice": notice, "cordoned": true});
    let mut node = node();
    node["metadata"]["annotations"]["spillway/claim"] = json!(annotation.to_string());
    node["metadata"]["managedFields"] = json!([
        {"manager": "spillway", "operation": "Update", "fieldsType": "FieldsV1", "apiVersion": "v1",
         "fieldsV1": {"f:spec": {"f:unschedulable": {}}}}]);
    node["spec"]["unschedulable"] = json!(true);
    node
}

/// Pod of a `ReplicaSet` on the node.
pub(crate) fn pod(name: &str) -> Value {
    let owner = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "rs", "controller": true});
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "uid": format!("uid-{name}"), "resourceVersion": "8",
            "ownerReferences": [owner]},
        "spec": {"nodeName": NODE, "terminationGracePeriodSeconds": 30, "containers": []},
        "status": {"phase": "Running"},
    })
}

pub(crate) fn list(kind: &str, items: &[Value]) -> Value {
    json!({"apiVersion": "v1", "kind": format!("{kind}List"), "metadata": {"resourceVersion": "7"}, "items": items})
}

/// Expects a read of the node, which has no attached volumes.
pub(crate) fn no_volumes() -> Expected {
    call(format!("GET {NODE_PATH}")).says(200, node())
}

/// Event of a watch.
pub(crate) fn watched(what: &str, object: &Value) -> Value {
    json!({"type": what, "object": object})
}
