//! Each field of each sample, spoilt in each way by itself.

use serde_json::{Value, json};

use super::{SAMPLES, examine, fields};
use crate::NoticeError;

/// In front of a key, these vanish from the event's text: an object holds a key once, its text may hold it twice.
const BEFORE: &str = "\u{1}";
const AFTER: &str = "\u{e000}";

/// Has each field of each sample spoilt, by what it is in and its key; what cannot be read then must name it.
fn each(spoil: impl Fn(&mut Value, &str)) {
    for (name, sample) in SAMPLES.iter() {
        // Without the key of what the function tells itself it is nothing of that.
        for (at, key) in fields(sample).into_iter().filter(|(_, key)| !key.starts_with("spillway-")) {
            let mut event = sample.clone();
            spoil(event.pointer_mut(&at).unwrap(), &key);
            let text = event.to_string().replace("\\u0001", "").replace(AFTER, "");
            match examine(&serde_json::from_str(&text).unwrap()) {
                Ok(_) => {}
                Err(NoticeError::Field { path, why }) => {
                    // An entry of a list goes by the list's name.
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

/// Puts another value in the place of a field's.
fn set(parent: &mut Value, key: &str, to: Value) {
    match parent {
        Value::Object(fields) => fields[key] = to,
        Value::Array(items) => items[key.parse::<usize>().unwrap()] = to,
        _ => unreachable!("it has fields"),
    }
}

#[test]
fn missing() {
    each(|parent, key| match parent {
        Value::Object(fields) => drop(fields.remove(key)),
        Value::Array(items) => drop(items.remove(key.parse().unwrap())),
        _ => unreachable!("it has fields"),
    });
}

#[test]
fn null() {
    each(|parent, key| set(parent, key, Value::Null));
}

#[test]
fn of_another_type() {
    for other in
        [json!(true), json!(-1), json!(1e300), json!(""), json!("x"), json!([]), json!({}), json!([[{"a": []}]])]
    {
        each(|parent, key| set(parent, key, other.clone()));
    }
}

#[test]
fn huge() {
    let mut deep = json!("i-1234567890abcdef0");
    for _ in 0..50 {
        deep = json!({ "detail": [deep] });
    }
    for huge in [json!("i-".repeat(1_000)), json!(vec!["i-1234567890abcdef0"; 200]), deep] {
        each(|parent, key| set(parent, key, huge.clone()));
    }
}

#[test]
fn in_another_case() {
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
fn twice() {
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

#[test]
fn of_another_instance() {
    each(|parent, key| set(parent, key, json!("i-0fedcba9876543210")));
}
