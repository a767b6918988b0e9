//! Formats a value as Go's `%v` does.

use serde_json::{Map, Value};

use super::float;

/// Returns the text that `{{ value }}` prints. Null prints as `<no value>`.
pub(crate) fn action(value: &Value) -> String {
    match value {
        Value::Null => "<no value>".to_owned(),
        _ => text(value),
    }
}

/// Returns the text that `%v` prints. Null prints as `<nil>`.
pub(crate) fn text(value: &Value) -> String {
    let mut out = String::new();
    write(&mut out, value);
    out
}

fn write(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("<nil>"),
        Value::Bool(truth) => out.push_str(if *truth { "true" } else { "false" }),
        Value::Number(number) => match number.as_f64() {
            Some(fraction) if number.is_f64() => out.push_str(&float::shortest(fraction)),
            _ => out.push_str(&number.to_string()),
        },
        Value::String(text) => out.push_str(text),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(' ');
                }
                write(out, item);
            }
            out.push(']');
        }
        Value::Object(entries) => {
            out.push_str("map[");
            for (index, (key, value)) in sorted(entries).into_iter().enumerate() {
                if index > 0 {
                    out.push(' ');
                }
                out.push_str(key);
                out.push(':');
                write(out, value);
            }
            out.push(']');
        }
    }
}

/// Returns the entries of a map, sorted by key.
pub(crate) fn sorted(entries: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut entries: Vec<_> = entries.iter().collect();
    entries.sort_unstable_by_key(|(key, _)| *key);
    entries
}
