//! Changes of a node by an API server: JSON patches and field managers.

use json_patch::{Patch, PatchOperation};
use serde_json::{Value, json};

/// Applies a JSON patch. As in the API server (evanphx/json-patch), a test for null passes for a missing value.
pub fn patched(object: &Value, operations: &Value) -> Result<Value, String> {
    let Patch(operations) = serde_json::from_value(operations.clone()).map_err(|error| error.to_string())?;
    let mut patched = object.clone();
    for operation in operations {
        if !is_test_for_missing(&operation, &patched) {
            json_patch::patch(&mut patched, &[operation]).map_err(|error| error.to_string())?;
        }
    }
    Ok(patched)
}

/// Returns `true` for a test for null of a missing value in an existing parent.
fn is_test_for_missing(operation: &PatchOperation, object: &Value) -> bool {
    let PatchOperation::Test(test) = operation else { return false };
    let has_parent = test.path.parent().is_none_or(|parent| parent.resolve(object).is_ok());
    test.value.is_null() && has_parent && test.path.resolve(object).is_err()
}

#[must_use]
pub fn is_cordoned(node: &Value) -> bool {
    node["spec"]["unschedulable"] == json!(true)
}

/// Node as the API server stores it after a request of a field manager.
#[must_use]
pub fn stored(before: Option<&Value>, mut node: Value, manager: &str, version: u64) -> Value {
    // Empty lists are left out.
    if node["spec"]["taints"].as_array().is_some_and(Vec::is_empty) {
        node["spec"].as_object_mut().expect("a node has a spec").remove("taints");
    }
    match (before.is_some_and(is_cordoned), is_cordoned(&node)) {
        (false, true) => {
            node["metadata"]["managedFields"] = json!([{
                "manager": manager, "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
                "fieldsV1": {"f:spec": {"f:unschedulable": {}}},
            }]);
        }
        (_, false) => node["metadata"]["managedFields"] = json!([]),
        (true, true) => {}
    }
    node["metadata"]["resourceVersion"] = json!(version.to_string());
    node
}
