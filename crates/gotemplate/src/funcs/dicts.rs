//! Template functions for maps. `keys` and `values` return lists sorted by key.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::arguments::Arguments;
use super::{Function, at_least, exactly, lists};
use crate::bounds;
use crate::go::display;

pub(super) static FUNCTIONS: [Function; 9] = [
    at_least("dict", 0, |arguments| Ok(dict(arguments))),
    exactly("get", 2, get),
    exactly("hasKey", 2, has_key),
    at_least("keys", 1, keys),
    exactly("values", 1, values),
    at_least("pick", 1, pick),
    at_least("omit", 1, omit),
    at_least("dig", 3, dig),
    exactly("split", 2, split),
];

fn dict(arguments: &Arguments<'_>) -> Value {
    let mut values = arguments.from(0);
    let mut entries = Map::new();
    while let Some(key) = values.next() {
        let value = values.next().cloned();
        entries.insert(display::text(key), value.unwrap_or_else(|| Value::from("")));
    }
    Value::Object(entries)
}

/// Returns the value of a key, or an empty string for a missing key.
fn get(arguments: &Arguments<'_>) -> Result<Value, String> {
    let (map, key) = (arguments.map(0)?, arguments.text(1)?);
    Ok(map.get(key).cloned().unwrap_or_else(|| Value::from("")))
}

fn has_key(arguments: &Arguments<'_>) -> Result<Value, String> {
    let (map, key) = (arguments.map(0)?, arguments.text(1)?);
    Ok(Value::from(map.contains_key(key)))
}

fn keys(arguments: &Arguments<'_>) -> Result<Value, String> {
    let mut all = Vec::new();
    for index in 0..arguments.len() {
        all.extend(display::sorted(arguments.map(index)?).into_iter().map(|(key, _)| Value::from(key.as_str())));
    }
    Ok(Value::from(all))
}

fn values(arguments: &Arguments<'_>) -> Result<Value, String> {
    Ok(display::sorted(arguments.map(0)?).into_iter().map(|(_, value)| value.clone()).collect())
}

fn pick(arguments: &Arguments<'_>) -> Result<Value, String> {
    let keys = named(arguments)?;
    Ok(kept(arguments.map(0)?, |key| keys.contains(key)))
}

fn omit(arguments: &Arguments<'_>) -> Result<Value, String> {
    let keys = named(arguments)?;
    Ok(kept(arguments.map(0)?, |key| !keys.contains(key)))
}

fn named<'a>(arguments: &'a Arguments<'_>) -> Result<BTreeSet<&'a str>, String> {
    (1..arguments.len()).map(|index| arguments.text(index)).collect()
}

fn kept(map: &Map<String, Value>, keeps: impl Fn(&str) -> bool) -> Value {
    let kept = map.iter().filter(|(key, _)| keeps(key));
    kept.map(|(key, value)| (key.clone(), value.clone())).collect::<Map<_, _>>().into()
}

/// Returns `.map.a.b` for `dig "a" "b" "default" .map`, or the default if a key is missing.
fn dig(arguments: &Arguments<'_>) -> Result<Value, String> {
    let last = arguments.len() - 1;
    arguments.map(last)?;
    let mut found = arguments.value(last);
    for index in 0..last - 1 {
        let map = found.as_object().ok_or_else(|| format!("what key {index} has is no map"))?;
        let Some(value) = map.get(arguments.text(index)?) else {
            return Ok(arguments.value(last - 1).clone());
        };
        found = value;
    }
    Ok(found.clone())
}

/// Splits a text into a map with the keys `_0`, `_1`, …, as sprig does.
fn split(arguments: &Arguments<'_>) -> Result<Value, String> {
    let (separator, text) = (arguments.text(0)?, arguments.text(1)?);
    let parts = lists::split(separator, text, bounds::entry("_0"))?.into_iter().enumerate();
    Ok(parts.map(|(index, part)| (format!("_{index}"), Value::from(part))).collect::<Map<_, _>>().into())
}
