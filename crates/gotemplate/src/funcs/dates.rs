//! Times by Go's layouts: `{{ .StartTime | date "15:04 MST" }}`. The function's own zone is UTC, as Lambda's is.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};
use serde_json::Value;

use super::arguments::{self, Arguments};
use super::{Function, exactly};
use crate::go::{self, layout, time, zone};

pub(super) static FUNCTIONS: [Function; 10] = [
    exactly("now", 0, |_| Ok(Value::from(time::print(&Timestamp::now().to_zoned(TimeZone::UTC))))),
    exactly("date", 2, |arguments| written(arguments, "UTC")),
    exactly("dateInZone", 3, |arguments| written(arguments, arguments::text(arguments, 2)?)),
    exactly("date_in_zone", 3, |arguments| written(arguments, arguments::text(arguments, 2)?)),
    exactly("htmlDate", 1, |arguments| Ok(Value::from(layout::format(&at(arguments, 0)?, "2006-01-02")))),
    exactly("unixEpoch", 1, |arguments| Ok(Value::from(at(arguments, 0)?.timestamp().as_second().to_string()))),
    exactly("ago", 1, ago),
    exactly("dateModify", 2, moved),
    exactly("date_modify", 2, moved),
    exactly("duration", 1, |arguments| Ok(duration(arguments))),
];

fn at(arguments: &Arguments<'_>, index: usize) -> Result<Zoned, String> {
    let value = arguments::value(arguments, index);
    time::of(value).ok_or_else(|| match value {
        Value::String(text) => format!("{} is no time", go::shown(text)),
        other => format!("{} is no time", go::kind(other)),
    })
}

fn written(arguments: &Arguments<'_>, zone: &str) -> Result<Value, String> {
    Ok(Value::from(layout::format(
        &at(arguments, 1)?.with_time_zone(zone::named(zone)?),
        arguments::text(arguments, 0)?,
    )))
}

/// `dateModify "-1h30m"`
fn moved(arguments: &Arguments<'_>) -> Result<Value, String> {
    let (by, time) = (arguments::text(arguments, 0)?, at(arguments, 1)?);
    let duration: SignedDuration = by.parse().map_err(|_| format!("{} is no duration", go::shown(by)))?;
    let moved = time.checked_add(duration).map_err(|_| format!("{} leads out of the calendar", go::shown(by)))?;
    Ok(Value::from(time::print(&moved)))
}

fn ago(arguments: &Arguments<'_>) -> Result<Value, String> {
    let passed = Timestamp::now().duration_since(at(arguments, 0)?.timestamp());
    Ok(Value::from(go_duration(passed.as_secs())))
}

/// Seconds as Go writes a duration: `1h2m3s`.
fn duration(arguments: &Arguments<'_>) -> Value {
    let seconds = match arguments::value(arguments, 0) {
        Value::String(text) => text.parse().unwrap_or(0),
        Value::Number(number) => number.as_i64().unwrap_or(0),
        _ => 0,
    };
    Value::from(go_duration(seconds))
}

fn go_duration(seconds: i64) -> String {
    let sign = if seconds < 0 { "-" } else { "" };
    let total = seconds.unsigned_abs();
    let (hours, minutes, seconds) = (total / 3600, total / 60 % 60, total % 60);
    match (hours, minutes) {
        (0, 0) => format!("{sign}{seconds}s"),
        (0, _) => format!("{sign}{minutes}m{seconds}s"),
        _ => format!("{sign}{hours}h{minutes}m{seconds}s"),
    }
}
