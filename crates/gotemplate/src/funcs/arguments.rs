//! A function's arguments, by the type that it takes.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::go;

/// Counted from 0 here, from 1 in errors. How many there are has been checked.
pub(super) type Arguments<'a> = [Cow<'a, Value>];

pub(super) fn text<'a>(arguments: &'a Arguments<'_>, index: usize) -> Result<&'a str, String> {
    match value(arguments, index) {
        Value::String(text) => Ok(text),
        other => Err(wrong(index, other, "a string")),
    }
}

pub(super) fn integer(arguments: &Arguments<'_>, index: usize) -> Result<i64, String> {
    let value = value(arguments, index);
    let wrong = || wrong(index, value, "a whole number");
    match value {
        Value::Number(number) if !number.is_f64() => number.as_i64().ok_or_else(wrong),
        _ => Err(wrong()),
    }
}

/// A number that counts something: not negative.
pub(super) fn count(arguments: &Arguments<'_>, index: usize) -> Result<usize, String> {
    let count = integer(arguments, index)?;
    usize::try_from(count).map_err(|_| format!("argument {} is {count}, less than 0", index + 1))
}

pub(super) fn boolean(arguments: &Arguments<'_>, index: usize) -> Result<bool, String> {
    match value(arguments, index) {
        Value::Bool(truth) => Ok(*truth),
        other => Err(wrong(index, other, "a boolean")),
    }
}

pub(super) fn list<'a>(arguments: &'a Arguments<'_>, index: usize) -> Result<&'a [Value], String> {
    match value(arguments, index) {
        Value::Array(items) => Ok(items),
        other => Err(wrong(index, other, "a list")),
    }
}

pub(super) fn map<'a>(arguments: &'a Arguments<'_>, index: usize) -> Result<&'a Map<String, Value>, String> {
    match value(arguments, index) {
        Value::Object(entries) => Ok(entries),
        other => Err(wrong(index, other, "a map")),
    }
}

/// Any value; nothing, where there is no such argument.
pub(super) fn value<'a>(arguments: &'a Arguments<'_>, index: usize) -> &'a Value {
    arguments.get(index).map_or(&Value::Null, AsRef::as_ref)
}

/// Those from `index` on.
pub(super) fn from<'a>(arguments: &'a Arguments<'_>, index: usize) -> impl Iterator<Item = &'a Value> {
    arguments.iter().skip(index).map(AsRef::as_ref)
}

fn wrong(index: usize, value: &Value, wanted: &str) -> String {
    format!("argument {} is {}, and should be {wanted}", index + 1, go::kind(value))
}
