//! Go's built-in template functions, except comparisons and escaping.

use serde_json::Value;

use super::arguments::Arguments;
use super::{Body, Function, at_least, exactly, printf, trim};
use crate::go::{self, display};

pub(super) static FUNCTIONS: [Function; 8] = [
    exactly("not", 1, |arguments| Ok(not(arguments))),
    exactly("len", 1, len),
    at_least("index", 1, index),
    Function { name: "slice", least: 1, most: Some(3), body: Body::Plain(slice) },
    at_least("print", 0, |arguments| Ok(print(arguments))),
    at_least("println", 0, |arguments| Ok(println(arguments))),
    at_least("printf", 1, printf),
    exactly("kindOf", 1, |arguments| Ok(kind_of(arguments))),
];

fn not(arguments: &Arguments<'_>) -> Value {
    Value::from(!go::is_true(arguments.value(0)))
}

/// Returns the number of items in a list, entries in a map, or bytes in a string.
fn len(arguments: &Arguments<'_>) -> Result<Value, String> {
    match arguments.value(0) {
        Value::String(text) => Ok(Value::from(text.len())),
        Value::Array(items) => Ok(Value::from(items.len())),
        Value::Object(entries) => Ok(Value::from(entries.len())),
        other => Err(format!("{} has no length", go::kind(other))),
    }
}

/// Returns `.Map.a.b` for `index .Map "a" "b"`.
fn index(arguments: &Arguments<'_>) -> Result<Value, String> {
    let mut value = arguments.value(0).clone();
    if value.is_null() {
        return Err("cannot index nothing".to_owned());
    }
    for key in arguments.from(1) {
        value = at(value, key, arguments.is_borrowed(0))?;
    }
    Ok(value)
}

fn at(value: Value, key: &Value, is_borrowed: bool) -> Result<Value, String> {
    match (value, key) {
        (Value::Object(mut entries), Value::String(key)) => {
            // In the data, a map of strings is a map[string]string in Go: a missing key is an empty string. Maps that a template
            // makes are map[string]any: a missing key is null.
            let only_strings = is_borrowed && entries.values().all(Value::is_string);
            let missing = if only_strings { Value::from("") } else { Value::Null };
            Ok(entries.remove(key).unwrap_or(missing))
        }
        (Value::Array(mut items), key) => {
            let index = position(key, items.len())?;
            Ok(items.swap_remove(index))
        }
        (Value::String(text), key) => Ok(Value::from(text.as_bytes()[position(key, text.len())?])),
        (Value::Object(_), key) => Err(format!("a map has strings for keys, and this is {}", go::kind(key))),
        (other, _) => Err(format!("cannot index {}", go::kind(&other))),
    }
}

fn position(key: &Value, length: usize) -> Result<usize, String> {
    let index = key.as_i64().ok_or_else(|| format!("an index is a whole number, and this is {}", go::kind(key)))?;
    let position = usize::try_from(index).ok().filter(|position| *position < length);
    position.ok_or_else(|| format!("there is no item {index} among {length}"))
}

/// Returns a slice of a list (as sprig does) or of a string (as Go does).
fn slice(arguments: &Arguments<'_>) -> Result<Value, String> {
    let value = arguments.value(0);
    let length = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.len(),
        other => return Err(format!("cannot slice {}", go::kind(other))),
    };
    let start = if arguments.len() > 1 { arguments.count(1)? } else { 0 };
    let end = if arguments.len() > 2 { arguments.count(2)? } else { length };
    if start > end || end > length {
        return Err(format!("there is no {start} to {end} in a length of {length}"));
    }
    match value {
        Value::String(text) => Ok(Value::from(trim::between(text, start, end))),
        Value::Array(items) => Ok(Value::from(&items[start..end])),
        _ => Ok(Value::Null),
    }
}

/// Joins the arguments. Adds a space between two arguments if neither is a string.
fn print(arguments: &Arguments<'_>) -> Value {
    let mut out = String::new();
    let mut after_string = true;
    for argument in arguments.from(0) {
        if !argument.is_string() && !after_string {
            out.push(' ');
        }
        out.push_str(&display::text(argument));
        after_string = argument.is_string();
    }
    Value::from(out)
}

fn println(arguments: &Arguments<'_>) -> Value {
    let mut out = String::new();
    for (index, argument) in arguments.from(0).enumerate() {
        if index > 0 {
            out.push(' ');
        }
        out.push_str(&display::text(argument));
    }
    Value::from(out + "\n")
}

fn printf(arguments: &Arguments<'_>) -> Result<Value, String> {
    Ok(Value::from(printf::format(arguments)?))
}

fn kind_of(arguments: &Arguments<'_>) -> Value {
    Value::from(match arguments.value(0) {
        Value::Null => "invalid",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
        scalar => go::type_name(scalar),
    })
}
