//! Go's own functions, but for those that compare and escape.

use serde_json::Value;

use super::arguments::{self, Arguments};
use super::{Body, Function, at_least, exactly, printf, trim};
use crate::bounds;
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
    Value::from(!go::is_true(arguments::value(arguments, 0)))
}

/// Strings are counted in bytes.
fn len(arguments: &Arguments<'_>) -> Result<Value, String> {
    match arguments::value(arguments, 0) {
        Value::String(text) => Ok(Value::from(text.len())),
        Value::Array(items) => Ok(Value::from(items.len())),
        Value::Object(entries) => Ok(Value::from(entries.len())),
        other => Err(format!("{} has no length", go::kind(other))),
    }
}

/// `index .NodeLabels "a" "b"` is what the key `b` has in what the key `a` has.
fn index(arguments: &Arguments<'_>) -> Result<Value, String> {
    let mut value = arguments::value(arguments, 0).clone();
    if value.is_null() {
        return Err("cannot index nothing".to_owned());
    }
    for key in arguments::from(arguments, 1) {
        value = at(value, key)?;
    }
    Ok(value)
}

fn at(value: Value, key: &Value) -> Result<Value, String> {
    match (value, key) {
        (Value::Object(mut entries), Value::String(key)) => {
            // Go's map[string]string has an empty string for the keys that it does not have.
            let only_strings = entries.values().all(Value::is_string);
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

/// sprig's, which takes lists, and Go's own, which takes strings too.
fn slice(arguments: &Arguments<'_>) -> Result<Value, String> {
    let value = arguments::value(arguments, 0);
    let length = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.len(),
        other => return Err(format!("cannot slice {}", go::kind(other))),
    };
    let start = if arguments.len() > 1 { arguments::count(arguments, 1)? } else { 0 };
    let end = if arguments.len() > 2 { arguments::count(arguments, 2)? } else { length };
    if start > end || end > length {
        return Err(format!("there is no {start} to {end} in a length of {length}"));
    }
    match value {
        Value::String(text) => Ok(Value::from(trim::between(text, start, end))),
        Value::Array(items) => Ok(Value::from(&items[start..end])),
        _ => Ok(Value::Null),
    }
}

/// A space between two that are both no strings.
fn print(arguments: &Arguments<'_>) -> Value {
    Value::from(sprint(arguments))
}

pub(super) fn sprint(arguments: &Arguments<'_>) -> String {
    let mut out = String::new();
    for (index, argument) in arguments.iter().enumerate() {
        if index > 0 && !argument.is_string() && !arguments[index - 1].is_string() {
            out.push(' ');
        }
        out.push_str(&display::text(argument));
    }
    out
}

fn println(arguments: &Arguments<'_>) -> Value {
    let texts: Vec<String> = arguments.iter().map(|argument| display::text(argument)).collect();
    Value::from(texts.join(" ") + "\n")
}

fn printf(arguments: &Arguments<'_>) -> Result<Value, String> {
    let format = arguments::text(arguments, 0)?;
    let values: Vec<&Value> = arguments::from(arguments, 1).collect();
    let text = printf::format(format, &values)?;
    bounds::room(text.len())?;
    Ok(Value::from(text))
}

fn kind_of(arguments: &Arguments<'_>) -> Value {
    Value::from(match arguments::value(arguments, 0) {
        Value::Null => "invalid",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
        scalar => go::type_name(scalar),
    })
}
