//! The objects that a scripted API server answers with.

use serde_json::{Value, json};

use super::instance;
use super::script::{Expected, call};
pub(crate) use crate::doubles::scripted::status;

/// The node's name where EC2 tells of no DNS name: the instance's id.
pub(crate) const NODE: &str = "i-0123456789abcdef0";
/// Its path.
pub(crate) const NODE_PATH: &str = "/api/v1/nodes/i-0123456789abcdef0";

/// The instance's node: Ready, in use, untouched.
pub(crate) fn node() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": NODE, "resourceVersion": "7", "labels": {}, "annotations": {}},
        "spec": {"providerID": instance().provider_id()},
        "status": {"conditions": [{"type": "Ready", "status": "True"}], "nodeInfo": {"bootID": "b-2"}},
    })
}

/// That node with a claim on it, which a notice of that kind, event and request made.
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

/// A pod on that node, of a `ReplicaSet`.
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

/// A list of that kind.
pub(crate) fn list(kind: &str, items: &[Value]) -> Value {
    json!({"apiVersion": "v1", "kind": format!("{kind}List"), "metadata": {"resourceVersion": "7"}, "items": items})
}

/// The node is read for the volumes that are attached to it, as for each hook: none.
pub(crate) fn no_volumes() -> Expected {
    call(format!("GET {NODE_PATH}")).says(200, node())
}

/// An event of a watch.
pub(crate) fn watched(what: &str, object: &Value) -> Value {
    json!({"type": what, "object": object})
}
