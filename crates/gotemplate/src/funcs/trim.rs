//! Template functions that return parts of a string.

use std::collections::BTreeSet;

use serde_json::Value;

use super::arguments::Arguments;
use super::{Function, exactly};

pub(super) static FUNCTIONS: [Function; 10] = [
    exactly("trim", 1, |arguments| Ok(Value::from(arguments.text(0)?.trim()))),
    exactly("trimAll", 2, trim_all),
    exactly("trimall", 2, trim_all),
    exactly("trimPrefix", 2, |arguments| cut(arguments, |text, part| text.strip_prefix(part))),
    exactly("trimSuffix", 2, |arguments| cut(arguments, |text, part| text.strip_suffix(part))),
    exactly("trunc", 2, trunc),
    exactly("abbrev", 2, abbrev),
    exactly("substr", 3, substr),
    exactly("nospace", 1, nospace),
    exactly("base", 1, |arguments| Ok(Value::from(base(arguments.text(0)?)))),
];

/// Removes the characters of the first argument from both ends of the second argument.
fn trim_all(arguments: &Arguments<'_>) -> Result<Value, String> {
    let (cut, text) = (arguments.text(0)?, arguments.text(1)?);
    let cut: BTreeSet<char> = cut.chars().collect();
    Ok(Value::from(text.trim_matches(|character| cut.contains(&character))))
}

fn cut(arguments: &Arguments<'_>, cut: for<'a> fn(&'a str, &str) -> Option<&'a str>) -> Result<Value, String> {
    let (part, text) = (arguments.text(0)?, arguments.text(1)?);
    Ok(Value::from(cut(text, part).unwrap_or(text)))
}

/// Returns the first bytes of a text, or the last bytes if the number of bytes is negative.
fn trunc(arguments: &Arguments<'_>) -> Result<Value, String> {
    let (count, text) = (arguments.integer(0)?, arguments.text(1)?);
    let length = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX).min(text.len());
    let kept = if count < 0 { between(text, text.len() - length, text.len()) } else { between(text, 0, length) };
    Ok(Value::from(kept))
}

/// Truncates a text to a maximum number of bytes, including `...` at the end.
fn abbrev(arguments: &Arguments<'_>) -> Result<Value, String> {
    let (width, text) = (arguments.integer(0)?, arguments.text(1)?);
    let width = usize::try_from(width).unwrap_or(0);
    if width < 4 || text.len() <= width {
        return Ok(Value::from(text));
    }
    Ok(Value::from(format!("{}...", between(text, 0, width - 3))))
}

/// Returns the bytes from `start` to `end`, or to the end of the text if `end` is negative or too large.
fn substr(arguments: &Arguments<'_>) -> Result<Value, String> {
    let (start, end) = (arguments.integer(0)?, arguments.integer(1)?);
    let text = arguments.text(2)?;
    let start = usize::try_from(start).unwrap_or(0);
    let end = usize::try_from(end).unwrap_or(text.len()).min(text.len());
    if start > end {
        return Err(format!("there is no {start} to {end} in a length of {}", text.len()));
    }
    Ok(Value::from(between(text, start, end)))
}

/// Returns the text from byte `start` to byte `end`, without incomplete characters.
pub(super) fn between(text: &str, start: usize, end: usize) -> &str {
    text.get(text.ceil_char_boundary(start)..text.floor_char_boundary(end)).unwrap_or_default()
}

fn nospace(arguments: &Arguments<'_>) -> Result<Value, String> {
    Ok(Value::from(arguments.text(0)?.split_whitespace().collect::<String>()))
}

/// Returns the last part of a path, such as `i-0a1b` of `aws:///eu-central-1a/i-0a1b`.
fn base(path: &str) -> &str {
    match path.trim_end_matches('/') {
        "" if path.is_empty() => ".",
        "" => "/",
        path => path.rsplit('/').next().unwrap_or(path),
    }
}
