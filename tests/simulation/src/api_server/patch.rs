//! JSON patches, as the API server takes them (evanphx/json-patch): a test for null passes where nothing stands.

use serde_json::Value;

/// Applies the operations to a copy; or says which did not pass.
pub(crate) fn apply(object: &Value, operations: &Value) -> Result<Value, String> {
    let mut patched = object.clone();
    for operation in operations.as_array().ok_or("it is no list")? {
        let text = |key: &str| operation[key].as_str().unwrap_or_default();
        let did = match text("op") {
            "test" => test(&patched, text("path"), &operation["value"]),
            "add" => add(&mut patched, text("path"), operation["value"].clone()),
            "remove" => remove(&mut patched, text("path")),
            other => Err(format!("nobody knows the operation {other}")),
        };
        did.map_err(|why| format!("{operation}: {why}"))?;
    }
    Ok(patched)
}

fn split(path: &str) -> (&str, String) {
    let (parent, key) = path.rsplit_once('/').unwrap_or(("", path));
    (parent, key.replace("~1", "/").replace("~0", "~"))
}

fn test(object: &Value, path: &str, wanted: &Value) -> Result<(), String> {
    let (parent, _) = split(path);
    if !parent.is_empty() && object.pointer(parent).is_none() {
        return Err("there is no such path".to_owned());
    }
    match object.pointer(path) {
        Some(found) if found == wanted => Ok(()),
        None if wanted.is_null() => Ok(()),
        found => Err(format!("there is {found:?}")),
    }
}

fn add(object: &mut Value, path: &str, value: Value) -> Result<(), String> {
    let (parent, key) = split(path);
    match object.pointer_mut(parent) {
        Some(Value::Object(map)) => drop(map.insert(key, value)),
        Some(Value::Array(list)) if key == "-" => list.push(value),
        _ => return Err("there is no such path".to_owned()),
    }
    Ok(())
}

fn remove(object: &mut Value, path: &str) -> Result<(), String> {
    let (parent, key) = split(path);
    let removed = match object.pointer_mut(parent) {
        Some(Value::Object(map)) => map.remove(&key).is_some(),
        Some(Value::Array(list)) => match key.parse::<usize>() {
            Ok(at) if at < list.len() => {
                list.remove(at);
                true
            }
            _ => false,
        },
        _ => false,
    };
    if removed { Ok(()) } else { Err("there is nothing".to_owned()) }
}
