//! Parses strings and Unix timestamps as times, because JSON has no type for times.

use jiff::fmt::strtime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use serde_json::Value;

use super::layout;

/// Maximum length in bytes of a time's text, which is enough for Go's print format.
const LONGEST: usize = 128;
/// Layout of times in Go's JSON.
const RFC_3339: &str = "2006-01-02T15:04:05.999999999Z07:00";
/// Layout of Go's print format, as in `Time.String`.
const GO: &str = "2006-01-02 15:04:05.999999999 -0700 MST";

/// Converts a value to a time. Accepts RFC 3339, Go's print format and seconds since 1970.
pub(crate) fn of(value: &Value) -> Option<Zoned> {
    match value {
        Value::Number(seconds) => {
            Timestamp::from_second(seconds.as_i64()?).ok().map(|time| time.to_zoned(TimeZone::UTC))
        }
        Value::String(text) if text.len() <= LONGEST => rfc3339(text).or_else(|| go(text)),
        _ => None,
    }
}

/// Converts a time in Go's print format to RFC 3339. Returns `None` for any other text.
pub(crate) fn in_json(text: &str) -> Option<String> {
    let time = if text.len() <= LONGEST { go(text) } else { None }?;
    Some(format_constant(&time, RFC_3339))
}

/// Formats a time in Go's print format: `2026-11-21 03:12:44 +0000 UTC`.
pub(crate) fn print(time: &Zoned) -> String {
    format_constant(time, GO)
}

/// Formats a time by a constant layout, for which formatting never fails.
fn format_constant(time: &Zoned, layout: &str) -> String {
    layout::format(time, layout).unwrap_or_default()
}

/// Calls a method of a time, such as `Format "15:04"`. Returns `None` if the method is unknown.
pub(crate) fn method(time: &Zoned, name: &str, arguments: &[Value]) -> Option<Result<Value, String>> {
    let number = |number: i64| Ok(Value::from(number));
    let answer = match (name, arguments) {
        ("Format", [Value::String(layout)]) => layout::format(time, layout).map(Value::from),
        ("Format", _) => Err("Format takes one argument, a layout such as \"15:04\"".to_owned()),
        ("UTC" | "Local", []) => Ok(Value::from(print(&time.with_time_zone(TimeZone::UTC)))),
        ("String", []) => Ok(Value::from(print(time))),
        ("Unix", []) => number(time.timestamp().as_second()),
        ("UnixMilli", []) => number(time.timestamp().as_millisecond()),
        ("Year", []) => number(time.year().into()),
        ("Month", []) => Ok(Value::from(format_constant(time, "January"))),
        ("Day", []) => number(time.day().into()),
        ("Hour", []) => number(time.hour().into()),
        ("Minute", []) => number(time.minute().into()),
        ("Second", []) => number(time.second().into()),
        ("Weekday", []) => Ok(Value::from(format_constant(time, "Monday"))),
        ("YearDay", []) => number(time.day_of_year().into()),
        // Go's zero time.
        ("IsZero", []) => Ok(Value::from(time.year() == 1)),
        _ => return None,
    };
    Some(answer)
}

fn rfc3339(text: &str) -> Option<Zoned> {
    // `jiff` parses more than RFC 3339, but a date alone or the text of a label must not become a time.
    (text.as_bytes().get(10) == Some(&b'T')).then_some(())?;
    strtime::parse("%Y-%m-%dT%H:%M:%S%.f%:z", text.replace('Z', "+00:00")).ok().and_then(|parsed| zoned(&parsed))
}

fn go(text: &str) -> Option<Zoned> {
    // Only the text up to the offset is parsed. The zone's name and the monotonic clock follow.
    let end = text.match_indices(' ').nth(2).map_or(text.len(), |(space, _)| space);
    strtime::parse("%Y-%m-%d %H:%M:%S%.f %z", text.get(..end)?).ok().and_then(|parsed| zoned(&parsed))
}

fn zoned(parsed: &strtime::BrokenDownTime) -> Option<Zoned> {
    let time = parsed.to_zoned().ok()?;
    let zero = time.offset().seconds() == 0;
    Some(if zero { time.with_time_zone(TimeZone::UTC) } else { time })
}
