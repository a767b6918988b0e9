//! How an API server changes a node: by a JSON patch, with a note of whose request it was.

use json_patch::{Patch, PatchOperation};
use serde_json::{Value, json};

/// The object with these operations applied in order, or which of them did not pass. As for the API server
/// (evanphx/json-patch), a test for null passes where nothing stands.
///
/// # Errors
/// The operation that does not pass, and why.
pub fn patched(object: &Value, operations: &Value) -> Result<Value, String> {
    let Patch(operations) = serde_json::from_value(operations.clone()).map_err(|error| error.to_string())?;
    let mut patched = object.clone();
    for operation in operations {
        if !is_test_for_nothing(&operation, &patched) {
            json_patch::patch(&mut patched, &[operation]).map_err(|error| error.to_string())?;
        }
    }
    Ok(patched)
}

/// Whether null is expected at a place where nothing stands, in something that does stand there.
fn is_test_for_nothing(operation: &PatchOperation, object: &Value) -> bool {
    let PatchOperation::Test(test) = operation else { return false };
    let has_parent = test.path.parent().is_none_or(|parent| parent.resolve(object).is_ok());
    test.value.is_null() && has_parent && test.path.resolve(object).is_err()
}

/// Whether a node is cordoned.
#[must_use]
pub fn is_cordoned(node: &Value) -> bool {
    node["spec"]["unschedulable"] == json!(true)
}

/// A node as the API server keeps it after a request of that manager.
#[must_use]
pub fn stored(before: Option<&Value>, mut node: Value, manager: &str, version: u64) -> Value {
    // What is empty is not sent.
    if node["spec"]["taints"].as_array().is_some_and(Vec::is_empty) {
        node["spec"].as_object_mut().expect("it has one").remove("taints");
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
