//! One kind of value to another. What cannot be read as a number is 0, as in sprig.

use serde_json::Value;

use super::arguments::{self, Arguments};
use super::{Function, exactly};
use crate::go::display;
use crate::go::json::{self, Escape, Layout};

pub(super) static FUNCTIONS: [Function; 12] = [
    exactly("toString", 1, |arguments| Ok(Value::from(display::text(arguments::value(arguments, 0))))),
    exactly("toJson", 1, |arguments| Ok(to_json(arguments, Layout::OneLine, Escape::Html))),
    exactly("mustToJson", 1, |arguments| Ok(to_json(arguments, Layout::OneLine, Escape::Html))),
    exactly("toPrettyJson", 1, |arguments| Ok(to_json(arguments, Layout::Pretty, Escape::Html))),
    exactly("mustToPrettyJson", 1, |arguments| Ok(to_json(arguments, Layout::Pretty, Escape::Html))),
    exactly("toRawJson", 1, |arguments| Ok(to_json(arguments, Layout::OneLine, Escape::Nothing))),
    exactly("mustToRawJson", 1, |arguments| Ok(to_json(arguments, Layout::OneLine, Escape::Nothing))),
    exactly("fromJson", 1, from_json),
    exactly("int", 1, |arguments| Ok(Value::from(integer(arguments::value(arguments, 0))))),
    exactly("int64", 1, |arguments| Ok(Value::from(integer(arguments::value(arguments, 0))))),
    exactly("float64", 1, |arguments| Ok(Value::from(float(arguments::value(arguments, 0))))),
    exactly("atoi", 1, |arguments| Ok(Value::from(arguments::text(arguments, 0)?.parse::<i64>().unwrap_or(0)))),
];

fn to_json(arguments: &Arguments<'_>, layout: Layout, escape: Escape) -> Value {
    Value::from(json::text(arguments::value(arguments, 0), layout, escape))
}

/// Nothing, if it is no JSON. Go reads every number as a fraction.
fn from_json(arguments: &Arguments<'_>) -> Result<Value, String> {
    let value = serde_json::from_str(arguments::text(arguments, 0)?).unwrap_or(Value::Null);
    Ok(with_fractions(value))
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

pub(super) fn integer(value: &Value) -> i64 {
    match value {
        Value::Bool(truth) => i64::from(*truth),
        Value::Number(number) => number.as_i64().unwrap_or_else(|| whole_part(number.as_f64().unwrap_or(0.0))),
        Value::String(text) => integer_in(text).unwrap_or(0),
        _ => 0,
    }
}

pub(super) fn float(value: &Value) -> f64 {
    match value {
        Value::Bool(truth) => f64::from(u8::from(*truth)),
        Value::Number(number) => number.as_f64().unwrap_or(0.0),
        Value::String(text) => text.parse().unwrap_or(0.0),
        _ => 0.0,
    }
}

#[expect(clippy::cast_possible_truncation, reason = "what is beyond the integers becomes the last of them")]
fn whole_part(fraction: f64) -> i64 {
    fraction as i64
}

/// `12`, `-0x1f`, `0b1`, and `12.00`.
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
    let number = i128::from_str_radix(digits, radix).ok().filter(|_| !digits.starts_with(['+', '-']))?;
    i64::try_from(sign * number).ok()
}
