//! Times. JSON has none: a string in RFC 3339, or as Go prints a time, is one wherever a time is expected, and a whole
//! number is the seconds since 1970.

use jiff::fmt::strtime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use serde_json::Value;

use super::layout;

/// The longest text that may be a time: Go's own, with a fraction, a zone's name and the monotonic clock.
const LONGEST: usize = 128;
/// Layout of times in Go's JSON.
const RFC_3339: &str = "2006-01-02T15:04:05.999999999Z07:00";
/// Go's `Time.String`. A fraction of a second stands only where there is one.
const GO: &str = "2006-01-02 15:04:05.999999999 -0700 MST";

/// The time that a value says it is, in the offset that it says.
pub(crate) fn of(value: &Value) -> Option<Zoned> {
    match value {
        Value::Number(seconds) => {
            Timestamp::from_second(seconds.as_i64()?).ok().map(|time| time.to_zoned(TimeZone::UTC))
        }
        Value::String(text) if text.len() <= LONGEST => rfc3339(text).or_else(|| go(text)),
        _ => None,
    }
}

/// A text as Go prints a time, as its JSON has it. One in RFC 3339 is already.
pub(crate) fn in_json(text: &str) -> Option<String> {
    let time = if text.len() <= LONGEST { go(text) } else { None }?;
    Some(short(&time, RFC_3339))
}

/// A time as Go prints it: `2026-11-21 03:12:44 +0000 UTC`.
pub(crate) fn print(time: &Zoned) -> String {
    short(time, GO)
}

/// The time by a layout of ours, which no value is too small for.
fn short(time: &Zoned, layout: &str) -> String {
    layout::format(time, layout).unwrap_or_default()
}

/// `.StartTime.Format "15:04"` and what else people ask a time for. Nothing if there is no such method.
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
        ("Month", []) => Ok(Value::from(short(time, "January"))),
        ("Day", []) => number(time.day().into()),
        ("Hour", []) => number(time.hour().into()),
        ("Minute", []) => number(time.minute().into()),
        ("Second", []) => number(time.second().into()),
        ("Weekday", []) => Ok(Value::from(short(time, "Monday"))),
        ("YearDay", []) => number(time.day_of_year().into()),
        // Go's zero time, which stands for a time that is not known.
        ("IsZero", []) => Ok(Value::from(time.year() == 1)),
        _ => return None,
    };
    Some(answer)
}

fn rfc3339(text: &str) -> Option<Zoned> {
    // The library reads more than RFC 3339 has; a date alone, or a label's text, is no time here.
    (text.as_bytes().get(10) == Some(&b'T')).then_some(())?;
    strtime::parse("%Y-%m-%dT%H:%M:%S%.f%:z", text.replace('Z', "+00:00")).ok().and_then(|parsed| zoned(&parsed))
}

fn go(text: &str) -> Option<Zoned> {
    // Before the zone's name, and Go's reading of the monotonic clock after it, stands the offset, which is all we need.
    let end = text.match_indices(' ').nth(2).map_or(text.len(), |(space, _)| space);
    strtime::parse("%Y-%m-%d %H:%M:%S%.f %z", text.get(..end)?).ok().and_then(|parsed| zoned(&parsed))
}

fn zoned(parsed: &strtime::BrokenDownTime) -> Option<Zoned> {
    let time = parsed.to_zoned().ok()?;
    let zero = time.offset().seconds() == 0;
    Some(if zero { time.with_time_zone(TimeZone::UTC) } else { time })
}
