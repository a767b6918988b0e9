//! Tests: each field of each sample, malformed in many ways.

use serde_json::{Value, json};

use super::{SAMPLES, examine, fields};
use crate::NoticeError;

/// Markers of a key that are removed from the event's text: the text may hold a key twice, an object cannot.
const BEFORE: &str = "\u{1}";
const AFTER: &str = "\u{e000}";

/// Changes each field of each sample by its parent and its key. A field that becomes unreadable must be named.
fn each(spoil: impl Fn(&mut Value, &str)) {
    for (name, sample) in SAMPLES.iter() {
        // A payload of the function's own is recognized by its key.
        for (at, key) in fields(sample).into_iter().filter(|(_, key)| !key.starts_with("spillway-")) {
            let mut event = sample.clone();
            spoil(event.pointer_mut(&at).unwrap(), &key);
            let text = event.to_string().replace("\\u0001", "").replace(AFTER, "");
            match examine(&serde_json::from_str(&text).unwrap()) {
                Ok(_) => {}
                Err(NoticeError::Field { path, why }) => {
                    // The path of a list's entry has the list's name.
                    let is_entry = key.bytes().all(|b| b.is_ascii_digit());
                    let field = if is_entry { at.rsplit('/').next().unwrap() } else { &key };
                    assert!(path.contains(field) || why.contains(field), "{name}{at}/{key}: at {path}: {why}");
                }
                Err(NoticeError::NotAnEvent(_)) => {
                    assert!(key == "source" || key == "detail-type", "{name}{at}/{key}");
                }
                Err(NoticeError::Foreign { .. }) => {
                    assert!(key == "account" || key == "region", "{name}{at}/{key}");
                }
            }
        }
    }
}

/// Replaces a field's value.
fn set(parent: &mut Value, key: &str, to: Value) {
    match parent {
        Value::Object(fields) => fields[key] = to,
        Value::Array(items) => items[key.parse::<usize>().unwrap()] = to,
        _ => unreachable!("a parent has fields"),
    }
}

#[test]
fn missing_field() {
    each(|parent, key| match parent {
        Value::Object(fields) => drop(fields.remove(key)),
        Value::Array(items) => drop(items.remove(key.parse().unwrap())),
        _ => unreachable!("a parent has fields"),
    });
}

#[test]
fn field_with_another_value() {
    let deep = (0..50).fold(json!("i-1234567890abcdef0"), |deep, _| json!({ "detail": [deep] }));
    let huge = [json!("i-".repeat(1_000)), json!(vec!["i-1234567890abcdef0"; 200]), deep];
    let odd = [json!(null), json!(true), json!(-1), json!(1e300), json!(""), json!("x"), json!([]), json!({})];
    for other in odd.into_iter().chain(huge).chain([json!([[{"a": []}]]), json!("i-0fedcba9876543210")]) {
        each(|parent, key| set(parent, key, other.clone()));
    }
}

#[test]
fn field_in_another_case() {
    each(|parent, key| {
        if let Some(fields) = parent.as_object_mut() {
            let value = fields.remove(key).unwrap();
            let other = if key.to_uppercase() == key { key.to_lowercase() } else { key.to_uppercase() };
            fields.insert(other, value);
        }
    });
    for change in [str::to_uppercase, str::to_lowercase] {
        each(|parent, key| {
            let value =
                if let Value::Array(items) = &*parent { &items[key.parse::<usize>().unwrap()] } else { &parent[key] };
            if let Some(text) = value.as_str() {
                let changed = change(text);
                set(parent, key, changed.into());
            }
        });
    }
}

#[test]
fn field_that_occurs_twice() {
    for marker in [BEFORE, AFTER] {
        for other in [json!(null), json!("i-0fedcba9876543210"), json!({}), json!([7])] {
            each(|parent, key| {
                if let Some(fields) = parent.as_object_mut() {
                    fields.insert(format!("{marker}{key}"), other.clone());
                }
            });
        }
    }
}
