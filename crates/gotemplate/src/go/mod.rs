//! Implements Go's rules for values, such as quoting and the formatting of times.

pub(crate) mod display;
pub(crate) mod duration;
pub(crate) mod float;
pub(crate) mod json;
pub(crate) mod layout;
pub(crate) mod quote;
pub(crate) mod time;
pub(crate) mod zone;

use serde_json::Value;

/// Returns `false` for `false`, 0, null and empty values, as `{{ if }}` does.
pub(crate) fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(truth) => *truth,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(entries) => !entries.is_empty(),
    }
}

/// Returns the kind of a value for error messages, such as `a list`.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.is_f64() => "a fraction",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}

/// Returns the beginning of a text in quotes, for error messages.
pub(crate) fn shown(text: &str) -> String {
    const MOST: usize = 60;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => quote::string(&text[..end]) + "…",
        None => quote::string(text),
    }
}

/// Returns the Go type of a value, such as `[]string` for a list of strings.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int",
        Value::String(_) => "string",
        Value::Array(items) if items.iter().all(Value::is_string) => "[]string",
        Value::Array(_) => "[]interface {}",
        Value::Object(entries) if entries.values().all(Value::is_string) => "map[string]string",
        Value::Object(_) => "map[string]interface {}",
    }
}
