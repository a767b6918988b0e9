//! Limits that keep a template from exhausting the memory, stack or time of the process.
//!
//! Each rendering has a [`Budget`](crate::budget::Budget) of [`WORK`] bytes. Each value and each step is charged to the budget.

use serde_json::Value;

/// Maximum size of a template's text, in bytes. The parsed tree takes at most 100 times as much memory.
pub(crate) const SOURCE: usize = 64 << 10;
/// Maximum nesting of blocks, parentheses, template calls and values. Each level takes some kilobytes of stack.
pub(crate) const DEPTH: usize = 100;
/// Maximum size of the rendered text, and of each computed value, in bytes.
pub(crate) const SIZE: usize = 1 << 20;
/// Budget of one rendering, in bytes: the maximum sum of all costs.
pub(crate) const WORK: usize = 16 << 20;
/// Bytes charged for one step, such as a field access or a pipeline.
pub(crate) const STEP: usize = 16;
/// Maximum size of a regular expression's text, in bytes. The parsed expression takes 100 times as much memory.
pub(crate) const EXPRESSION: usize = 4 << 10;
/// Maximum size of a compiled regular expression, and of the text to search, in bytes.
pub(crate) const SEARCH: usize = 32 << 10;
/// Number of search steps of a regular expression for which one byte is charged.
pub(crate) const STEPS_PER_BYTE: usize = 128;
/// Bytes charged for each character of a time layout such as `15:04`.
pub(crate) const LAYOUT: usize = 16;
/// Bytes charged for reading a time zone file.
pub(crate) const ZONE: usize = 4 << 10;
/// Bytes charged for a value without its text, items or entries.
pub(crate) const VALUE: usize = 32;

/// Fails if `bytes` exceeds [`SIZE`].
pub(crate) fn check_size(bytes: usize) -> Result<(), String> {
    if bytes > SIZE { Err(too_large()) } else { Ok(()) }
}

/// Returns the error message for a value larger than [`SIZE`].
pub(crate) fn too_large() -> String {
    format!("this makes more than {SIZE} bytes")
}

/// Returns the approximate size of a value in bytes. Fails if the value has more than [`DEPTH`] nested levels.
pub(crate) fn size_of_value(value: &Value) -> Result<usize, String> {
    size_at_depth(value, 0)
}

fn size_at_depth(value: &Value, depth: usize) -> Result<usize, String> {
    if depth > DEPTH {
        return Err(format!("this makes a value of more than {DEPTH} levels"));
    }
    let inner = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(items) => sum(items.iter().map(|item| size_at_depth(item, depth + 1)))?,
        Value::Object(entries) => {
            sum(entries.iter().map(|(key, value)| Ok(entry(key) + size_at_depth(value, depth + 1)?)))?
        }
    };
    Ok(VALUE.saturating_add(inner))
}

/// Returns the approximate size of a map entry in bytes, without the value.
pub(crate) fn entry(key: &str) -> usize {
    2 * VALUE + key.len()
}

fn sum(mut weights: impl Iterator<Item = Result<usize, String>>) -> Result<usize, String> {
    weights.try_fold(0_usize, |total, weight| Ok(total.saturating_add(weight?)))
}
