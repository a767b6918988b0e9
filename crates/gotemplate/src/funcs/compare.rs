//! Template functions that compare values of the same kind, as in Go.

use std::cmp::Ordering;

use serde_json::Value;

use super::arguments::Arguments;
use super::{Function, at_least, exactly};
use crate::go;

pub(super) static FUNCTIONS: [Function; 6] = [
    at_least("eq", 2, eq),
    exactly("ne", 2, ne),
    exactly("lt", 2, |arguments| ordered(arguments, Ordering::is_lt)),
    exactly("le", 2, |arguments| ordered(arguments, Ordering::is_le)),
    exactly("gt", 2, |arguments| ordered(arguments, Ordering::is_gt)),
    exactly("ge", 2, |arguments| ordered(arguments, Ordering::is_ge)),
];

/// Returns `true` if the first argument equals at least one other argument.
fn eq(arguments: &Arguments<'_>) -> Result<Value, String> {
    let first = arguments.value(0);
    for other in arguments.from(1) {
        if equal(first, other)? {
            return Ok(Value::from(true));
        }
    }
    Ok(Value::from(false))
}

fn ne(arguments: &Arguments<'_>) -> Result<Value, String> {
    Ok(Value::from(!equal(arguments.value(0), arguments.value(1))?))
}

fn equal(one: &Value, other: &Value) -> Result<bool, String> {
    match (one, other) {
        (Value::Null, Value::Null) => Ok(true),
        (Value::Null, _) | (_, Value::Null) => Ok(false),
        (Value::Bool(_), Value::Bool(_)) | (Value::String(_), Value::String(_)) => Ok(one == other),
        (Value::Number(a), Value::Number(b)) if a.is_f64() == b.is_f64() => Ok(one == other),
        _ => Err(incomparable(one, other)),
    }
}

fn ordered(arguments: &Arguments<'_>, holds: fn(Ordering) -> bool) -> Result<Value, String> {
    let (one, other) = (arguments.value(0), arguments.value(1));
    let order = match (one, other) {
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        (Value::Number(a), Value::Number(b)) if a.is_f64() && b.is_f64() => a.as_f64().partial_cmp(&b.as_f64()),
        (Value::Number(a), Value::Number(b)) if !a.is_f64() && !b.is_f64() => Some(whole(a).cmp(&whole(b))),
        _ => None,
    };
    order.map(|order| Value::from(holds(order))).ok_or_else(|| incomparable(one, other))
}

fn whole(number: &serde_json::Number) -> i128 {
    number.as_i128().unwrap_or_default()
}

fn incomparable(one: &Value, other: &Value) -> String {
    format!("cannot compare {} with {}", go::kind(one), go::kind(other))
}
