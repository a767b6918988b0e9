//! How much a template may use. People write templates, and a mistake must not take the function's memory, stack or time.

use serde_json::Value;

/// Blocks, parentheses and template calls within each other. One level takes some kilobytes of a 2 MiB stack.
pub(crate) const DEPTH: usize = 100;
/// A rendered message, and any one value on the way to it. Chats take some 40 KB.
pub(crate) const SIZE: usize = 1 << 20;
/// What one rendering may read and make altogether, in bytes: well under a second's work, and a bound on all variables.
pub(crate) const WORK: usize = 32 << 20;
/// What a step takes, whatever it does: each value that is named and each pipeline.
pub(crate) const STEP: usize = 16;
/// A regular expression's own size, and that of what it is asked of: the work is their product.
pub(crate) const EXPRESSION: usize = 32 << 10;
/// What a value takes beside its text.
const VALUE: usize = 32;

/// Refuses a text of so many bytes, before it is made.
pub(crate) fn room(bytes: usize) -> Result<(), String> {
    if bytes > SIZE { Err(too_large()) } else { Ok(()) }
}

pub(crate) fn too_large() -> String {
    format!("this makes more than {SIZE} bytes")
}

/// About how many bytes a value takes; refuses one that is nested too deep for what walks it.
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
        Value::Object(entries) => {
            sum(entries.iter().map(|(key, value)| Ok(VALUE + key.len() + weigh_at(value, depth + 1)?)))?
        }
    };
    Ok(VALUE.saturating_add(inner))
}

fn sum(mut weights: impl Iterator<Item = Result<usize, String>>) -> Result<usize, String> {
    weights.try_fold(0_usize, |total, weight| Ok(total.saturating_add(weight?)))
}
