//! Limits of a template, so that a mistake in a template cannot exhaust the memory, stack or time of the process.
//!
//! Each rendering has a [`Budget`](crate::budget::Budget) in bytes. Reading, making and keeping a value costs its size. A
//! function that takes more time than its bytes suggest costs a multiple of them.

use serde_json::Value;

/// Maximum size of a template's text. The parsed tree is at worst a hundred times as large.
pub(crate) const SOURCE: usize = 64 << 10;
/// Maximum nesting of blocks, parentheses and template calls. One level takes some kilobytes of a 2 MiB stack.
pub(crate) const DEPTH: usize = 100;
/// Maximum size of a rendered message, and of each value computed on the way. Chats accept some 40 KB.
pub(crate) const SIZE: usize = 1 << 20;
/// Maximum number of bytes that one rendering reads and makes. Limits the time, and the size of all variables.
pub(crate) const WORK: usize = 16 << 20;
/// Cost in bytes of one step: a named value, a field, a pipeline, or a directive of `printf`.
pub(crate) const STEP: usize = 16;
/// Maximum size of a regular expression's text. The parsed expression takes a hundred times as much.
pub(crate) const EXPRESSION: usize = 4 << 10;
/// Maximum size of a compiled regular expression, and of a searched text. The work of a search is their product.
pub(crate) const SEARCH: usize = 32 << 10;
/// Divisor of a search's cost: the size of the expression times the size of the text, divided by this number.
pub(crate) const SEARCHED: usize = 128;
/// Cost in bytes of each byte of a time layout, because one byte may become the name of a month.
pub(crate) const LAYOUT: usize = 16;
/// Cost in bytes of finding a time zone, which reads a file.
pub(crate) const ZONE: usize = 4 << 10;
/// Cost in bytes of any value, in addition to its text.
pub(crate) const VALUE: usize = 32;

/// Fails for a size above [`SIZE`]. Called before a value of this size is made.
pub(crate) fn room(bytes: usize) -> Result<(), String> {
    if bytes > SIZE { Err(too_large()) } else { Ok(()) }
}

/// Error message for a value above [`SIZE`].
pub(crate) fn too_large() -> String {
    format!("this makes more than {SIZE} bytes")
}

/// Approximate size of a value in bytes. Fails if the value has more than [`DEPTH`] levels.
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
