//! Template functions for lists.

use std::collections::BTreeSet;

use serde_json::Value;

use super::arguments::Arguments;
use super::{Function, at_least, exactly};
use crate::bounds;
use crate::go::{self, display};

pub(super) static FUNCTIONS: [Function; 20] = [
    at_least("list", 0, |arguments| Ok(arguments.from(0).cloned().collect())),
    at_least("tuple", 0, |arguments| Ok(arguments.from(0).cloned().collect())),
    exactly("join", 2, join),
    exactly("toStrings", 1, |arguments| Ok(Value::from(strings(arguments.value(0))))),
    exactly("splitList", 2, split_list),
    exactly("sortAlpha", 1, |arguments| Ok(sort_alpha(arguments))),
    exactly("first", 1, |arguments| Ok(arguments.list(0)?.first().cloned().unwrap_or(Value::Null))),
    exactly("last", 1, |arguments| Ok(arguments.list(0)?.last().cloned().unwrap_or(Value::Null))),
    exactly("rest", 1, |arguments| Ok(arguments.list(0)?.iter().skip(1).cloned().collect())),
    exactly("initial", 1, initial),
    exactly("reverse", 1, |arguments| Ok(arguments.list(0)?.iter().rev().cloned().collect())),
    exactly("uniq", 1, uniq),
    exactly("compact", 1, compact),
    at_least("without", 1, without),
    exactly("has", 2, has),
    exactly("append", 2, append),
    exactly("prepend", 2, prepend),
    at_least("concat", 0, concat),
    exactly("until", 1, until),
    exactly("push", 2, append),
];

/// Converts the items of a list, or a single value, to strings. Skips null.
fn strings(value: &Value) -> Vec<String> {
    match value {
        Value::Null => Vec::new(),
        Value::Array(items) => items.iter().filter(|item| !item.is_null()).map(display::text).collect(),
        other => vec![display::text(other)],
    }
}

fn join(arguments: &Arguments<'_>) -> Result<Value, String> {
    let separator = arguments.text(0)?;
    let strings = strings(arguments.value(1));
    bounds::check_size(separator.len().saturating_mul(strings.len()))?;
    Ok(Value::from(strings.join(separator)))
}

fn split_list(arguments: &Arguments<'_>) -> Result<Value, String> {
    let (separator, text) = (arguments.text(0)?, arguments.text(1)?);
    Ok(split(separator, text, 0)?.into_iter().map(Value::from).collect())
}

/// Splits a text. Fails if the parts exceed the maximum size of a value. Each part counts `extra` more bytes.
pub(super) fn split<'a>(separator: &str, text: &'a str, extra: usize) -> Result<Vec<&'a str>, String> {
    let count = if separator.is_empty() { text.chars().count() } else { text.matches(separator).count() + 1 };
    bounds::check_size(count.saturating_mul(bounds::VALUE + extra).saturating_add(text.len()))?;
    if separator.is_empty() {
        return Ok(text.split_inclusive(|_| true).collect());
    }
    Ok(text.split(separator).collect())
}

fn sort_alpha(arguments: &Arguments<'_>) -> Value {
    let mut strings = strings(arguments.value(0));
    strings.sort_unstable();
    Value::from(strings)
}

fn initial(arguments: &Arguments<'_>) -> Result<Value, String> {
    let items = arguments.list(0)?;
    Ok(Value::from(&items[..items.len().saturating_sub(1)]))
}

fn uniq(arguments: &Arguments<'_>) -> Result<Value, String> {
    let mut kept = BTreeSet::new();
    let items = arguments.list(0)?.iter();
    Ok(items.filter(|item| kept.insert(identity(item))).cloned().collect())
}

/// Returns the JSON of a value. Two values with the same JSON are equal.
fn identity(value: &Value) -> String {
    value.to_string()
}

fn compact(arguments: &Arguments<'_>) -> Result<Value, String> {
    Ok(arguments.list(0)?.iter().filter(|item| go::is_true(item)).cloned().collect())
}

fn without(arguments: &Arguments<'_>) -> Result<Value, String> {
    let items = arguments.list(0)?;
    // Every item is compared with every argument.
    arguments.charge(items.len().saturating_mul(arguments.len()))?;
    Ok(items.iter().filter(|item| arguments.from(1).all(|left_out| left_out != *item)).cloned().collect())
}

fn has(arguments: &Arguments<'_>) -> Result<Value, String> {
    if arguments.value(1).is_null() {
        return Ok(Value::from(false));
    }
    Ok(Value::from(arguments.list(1)?.contains(arguments.value(0))))
}

fn append(arguments: &Arguments<'_>) -> Result<Value, String> {
    let items = arguments.list(0)?.iter();
    Ok(items.chain([arguments.value(1)]).cloned().collect())
}

fn prepend(arguments: &Arguments<'_>) -> Result<Value, String> {
    let items = arguments.list(0)?;
    Ok([arguments.value(1)].into_iter().chain(items).cloned().collect())
}

fn concat(arguments: &Arguments<'_>) -> Result<Value, String> {
    let mut all = Vec::new();
    for index in 0..arguments.len() {
        all.extend_from_slice(arguments.list(index)?);
    }
    Ok(Value::from(all))
}

/// Returns `[0 1 2]` for `until 3`, and `[0 -1 -2]` for `until -3`.
fn until(arguments: &Arguments<'_>) -> Result<Value, String> {
    let end = arguments.integer(0)?;
    bounds::check_size(usize::try_from(end.unsigned_abs()).unwrap_or(usize::MAX).saturating_mul(bounds::VALUE))?;
    Ok(if end < 0 { (end + 1..=0).rev().map(Value::from).collect() } else { (0..end).map(Value::from).collect() })
}
