//! Limits of a template. A mistake in a template must not exhaust memory, stack or time of the process.
//!
//! All work is charged in bytes to the [`Budget`](crate::budget::Budget) of the rendering: text that is read, values
//! that are made and kept, and at a higher rate functions that cost more than their bytes.

use serde_json::Value;

/// Text of a template. The tree is at worst a hundred times as large.
pub(crate) const SOURCE: usize = 64 << 10;
/// Blocks, parentheses and template calls within each other. One level takes some kilobytes of a 2 MiB stack.
pub(crate) const DEPTH: usize = 100;
/// A rendered message, and each value in between. Chats accept some 40 KB.
pub(crate) const SIZE: usize = 1 << 20;
/// Largest sum of bytes that one rendering reads and makes. Bounds its time and the size of all variables.
pub(crate) const WORK: usize = 16 << 20;
/// Cost of a step in bytes: a named value, a field, a pipeline, or a directive of `printf`.
pub(crate) const STEP: usize = 16;
/// Text of a regular expression. Parsed, it takes a hundred times as much.
pub(crate) const EXPRESSION: usize = 4 << 10;
/// Longest compiled regular expression and longest searched text, in bytes. The work is their product.
pub(crate) const SEARCH: usize = 32 << 10;
/// Product of expression and text, in bytes squared, that costs one byte.
pub(crate) const SEARCHED: usize = 128;
/// Cost in bytes of one byte of a time layout. One byte may become the name of a month.
pub(crate) const LAYOUT: usize = 16;
/// Cost in bytes of a look-up of a time zone, which reads a file.
pub(crate) const ZONE: usize = 4 << 10;
/// Cost in bytes of a value, besides its text.
pub(crate) const VALUE: usize = 32;

/// Refuses a value above the limit before it is made.
pub(crate) fn room(bytes: usize) -> Result<(), String> {
    if bytes > SIZE { Err(too_large()) } else { Ok(()) }
}

/// Error message for a value above the limit.
pub(crate) fn too_large() -> String {
    format!("this makes more than {SIZE} bytes")
}

/// Approximate size of a value in bytes. Refuses a value with too many levels for a recursive walk.
pub(crate) fn weigh(value: &Value) -> Result<usize, String> {
    weigh_at(value, 0)
}

fn weigh_at(value: &Value, depth: usize) -> Result<usize, String> {
    if depth > DEPTH {
        return Err(format!("this makes a value of more than {DEPTH} levels"));
    }
    let inner = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(items) => sum(items.iter().map(|item| weigh_at(item, depth + 1)))?,
        Value::Object(entries) => sum(entries.iter().map(|(key, value)| Ok(entry(key) + weigh_at(value, depth + 1)?)))?,
    };
    Ok(VALUE.saturating_add(inner))
}

/// Approximate size of a key and its entry in a map.
pub(crate) fn entry(key: &str) -> usize {
    2 * VALUE + key.len()
}

fn sum(mut weights: impl Iterator<Item = Result<usize, String>>) -> Result<usize, String> {
    weights.try_fold(0_usize, |total, weight| Ok(total.saturating_add(weight?)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn map_costs_the_sum_of_its_keys_and_values() {
        let key = "topology.kubernetes.io/zone";
        assert!(entry(key) >= size_of::<(String, Value)>() + key.len());
        assert_eq!(weigh(&json!({key: ["text"]})).unwrap(), weigh(&json!([["text"]])).unwrap() + entry(key));
    }
}
