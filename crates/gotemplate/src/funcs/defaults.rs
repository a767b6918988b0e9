//! Template functions that test or replace empty values.

use serde_json::Value;

use super::arguments::Arguments;
use super::{Function, at_least, exactly};
use crate::go;

pub(super) static FUNCTIONS: [Function; 7] = [
    at_least("default", 1, |arguments| Ok(default(arguments))),
    exactly("empty", 1, |arguments| Ok(Value::from(!go::is_true(arguments.value(0))))),
    at_least("coalesce", 0, |arguments| Ok(coalesce(arguments))),
    at_least("all", 0, |arguments| Ok(Value::from(arguments.from(0).all(go::is_true)))),
    at_least("any", 0, |arguments| Ok(Value::from(arguments.from(0).any(go::is_true)))),
    exactly("ternary", 3, ternary),
    exactly("fail", 1, |arguments| Err(arguments.text(0)?.to_owned())),
];

/// Returns the second argument, or the first argument if the second is empty.
fn default(arguments: &Arguments<'_>) -> Value {
    let given = arguments.value(1);
    if go::is_true(given) { given.clone() } else { arguments.value(0).clone() }
}

fn coalesce(arguments: &Arguments<'_>) -> Value {
    arguments.from(0).find(|value| go::is_true(value)).cloned().unwrap_or(Value::Null)
}

fn ternary(arguments: &Arguments<'_>) -> Result<Value, String> {
    let chosen = usize::from(!arguments.boolean(2)?);
    Ok(arguments.value(chosen).clone())
}
