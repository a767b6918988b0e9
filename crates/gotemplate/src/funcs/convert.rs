//! Template functions that convert a value to a string, JSON or a number.

use std::borrow::Cow;

use serde_json::Value;

use super::arguments::Arguments;
use super::{Function, exactly};
use crate::bounds;
use crate::go::display;
use crate::go::json::{self, Escape, Layout};

pub(super) static FUNCTIONS: [Function; 12] = [
    exactly("toString", 1, |arguments| Ok(Value::from(display::text(arguments.value(0))))),
    exactly("toJson", 1, |arguments| to_json(arguments, Layout::OneLine, Escape::Html)),
    exactly("mustToJson", 1, |arguments| to_json(arguments, Layout::OneLine, Escape::Html)),
    exactly("toPrettyJson", 1, |arguments| to_json(arguments, Layout::Pretty, Escape::Html)),
    exactly("mustToPrettyJson", 1, |arguments| to_json(arguments, Layout::Pretty, Escape::Html)),
    exactly("toRawJson", 1, |arguments| to_json(arguments, Layout::OneLine, Escape::Nothing)),
    exactly("mustToRawJson", 1, |arguments| to_json(arguments, Layout::OneLine, Escape::Nothing)),
    exactly("fromJson", 1, from_json),
    exactly("int", 1, |arguments| Ok(Value::from(integer(arguments.value(0))?))),
    exactly("int64", 1, |arguments| Ok(Value::from(integer(arguments.value(0))?))),
    exactly("float64", 1, |arguments| Ok(Value::from(float(arguments.value(0))))),
    exactly("atoi", 1, |arguments| Ok(Value::from(arguments.text(0)?.parse::<i64>().unwrap_or(0)))),
];

/// Error message for a number that does not fit in 64 bits.
pub(super) const BEYOND: &str = "this makes a number beyond 64 bits";

fn to_json(arguments: &Arguments<'_>, layout: Layout, escape: Escape) -> Result<Value, String> {
    Ok(Value::from(json::text(arguments.value(0), layout, escape)?))
}

/// Parses JSON, and returns null if the JSON is invalid. As in Go, each number becomes an `f64`.
fn from_json(arguments: &Arguments<'_>) -> Result<Value, String> {
    let text = arguments.text(0)?;
    // Estimate of the number of values: each value but the first follows one of these characters.
    let values = text.bytes().filter(|byte| b",:[{".contains(byte)).count();
    bounds::check_size(values.saturating_mul(bounds::VALUE).saturating_add(text.len()))?;
    Ok(with_fractions(serde_json::from_str(text).unwrap_or(Value::Null)))
}

fn with_fractions(value: Value) -> Value {
    match value {
        Value::Number(number) => number.as_f64().map_or(Value::Null, Value::from),
        Value::Array(items) => items.into_iter().map(with_fractions).collect(),
        Value::Object(entries) => {
            Value::Object(entries.into_iter().map(|(key, value)| (key, with_fractions(value))).collect())
        }
        other => other,
    }
}

/// Converts a value to a whole number. Fails if the number does not fit in 64 bits.
pub(super) fn integer(value: &Value) -> Result<i64, String> {
    match value {
        Value::Bool(truth) => Ok(i64::from(*truth)),
        Value::Number(number) => match number.as_i64() {
            Some(integer) => Ok(integer),
            None => whole_part(number.as_f64().unwrap_or(0.0)),
        },
        Value::String(text) => Ok(integer_in(text).unwrap_or(0)),
        _ => Ok(0),
    }
}

pub(super) fn float(value: &Value) -> f64 {
    match value {
        Value::Bool(truth) => f64::from(u8::from(*truth)),
        Value::Number(number) => number.as_f64().unwrap_or(0.0),
        Value::String(text) => without_underscores(text).and_then(|text| text.parse().ok()).unwrap_or(0.0),
        _ => 0.0,
    }
}

fn whole_part(fraction: f64) -> Result<i64, String> {
    // 2^63: the first number out of range.
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&fraction) {
        #[expect(clippy::cast_possible_truncation, reason = "it is within the integers, and its fraction is cut off")]
        return Ok(fraction as i64);
    }
    Err(BEYOND.to_owned())
}

/// Parses a whole number such as `12`, `-0x1f`, `0b1`, `1_000` or `12.00`.
fn integer_in(text: &str) -> Option<i64> {
    let whole = text.split_once('.').filter(|(_, zeros)| !zeros.is_empty() && zeros.bytes().all(|byte| byte == b'0'));
    let text = whole.map_or(text, |(whole, _)| whole);
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let (radix, digits) = match digits.get(..2).map(str::to_ascii_lowercase).as_deref() {
        Some("0x") => (16, &digits[2..]),
        Some("0o") => (8, &digits[2..]),
        Some("0b") => (2, &digits[2..]),
        Some(two) if two.starts_with('0') => (8, &digits[1..]),
        _ => (10, digits),
    };
    // An underscore may follow the prefix, as in `0x_1f`.
    let digits = without_underscores(if radix == 10 { digits } else { digits.strip_prefix('_').unwrap_or(digits) })?;
    let number = i128::from_str_radix(&digits, radix).ok().filter(|_| !digits.starts_with(['+', '-']))?;
    i64::try_from(sign * number).ok()
}

/// Removes the underscores from a number. Returns `None` if an underscore is not between two digits.
fn without_underscores(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('_') {
        return Some(text.into());
    }
    let parts = text.split('_').collect::<Vec<_>>();
    let between = parts.windows(2).all(|pair| {
        pair[0].ends_with(|c: char| c.is_ascii_hexdigit()) && pair[1].starts_with(|c: char| c.is_ascii_hexdigit())
    });
    between.then(|| parts.concat().into())
}
