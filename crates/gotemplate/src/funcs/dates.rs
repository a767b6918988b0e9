//! Template functions for times, such as `{{ .StartTime | date "15:04" }}`.

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use serde_json::Value;

use super::arguments::Arguments;
use super::{Function, exactly};
use crate::bounds;
use crate::go::{self, duration, layout, time, zone};

pub(super) static FUNCTIONS: [Function; 10] = [
    exactly("now", 0, |_| Ok(Value::from(time::print(&Timestamp::now().to_zoned(TimeZone::UTC))))),
    exactly("date", 2, |arguments| written(arguments, &TimeZone::UTC)),
    exactly("dateInZone", 3, written_in_zone),
    exactly("date_in_zone", 3, written_in_zone),
    exactly("htmlDate", 1, |arguments| Ok(Value::from(layout::format(&at(arguments, 0)?, "2006-01-02")?))),
    exactly("unixEpoch", 1, |arguments| Ok(Value::from(at(arguments, 0)?.timestamp().as_second().to_string()))),
    exactly("ago", 1, ago),
    exactly("dateModify", 2, moved),
    exactly("date_modify", 2, moved),
    exactly("duration", 1, |arguments| Ok(seconds(arguments))),
];

fn at(arguments: &Arguments<'_>, index: usize) -> Result<Zoned, String> {
    let value = arguments.value(index);
    time::of(value).ok_or_else(|| match value {
        Value::String(text) => format!("{} is no time", go::shown(text)),
        other => format!("{} is no time", go::kind(other)),
    })
}

fn written_in_zone(arguments: &Arguments<'_>) -> Result<Value, String> {
    arguments.charge(bounds::ZONE)?;
    written(arguments, &zone::named(arguments.text(2)?)?)
}

fn written(arguments: &Arguments<'_>, zone: &TimeZone) -> Result<Value, String> {
    let layout = arguments.text(0)?;
    arguments.charge(bounds::LAYOUT * layout.len())?;
    Ok(Value::from(layout::format(&at(arguments, 1)?.with_time_zone(zone.clone()), layout)?))
}

/// Adds a duration, such as `-1h30m`, to a time.
fn moved(arguments: &Arguments<'_>) -> Result<Value, String> {
    let (by, time) = (arguments.text(0)?, at(arguments, 1)?);
    let duration = duration::parse(by).ok_or_else(|| format!("{} is no duration", go::shown(by)))?;
    let moved = time.checked_add(duration).map_err(|_| format!("{} leads out of the calendar", go::shown(by)))?;
    Ok(Value::from(time::print(&moved)))
}

fn ago(arguments: &Arguments<'_>) -> Result<Value, String> {
    let passed = Timestamp::now().duration_since(at(arguments, 0)?.timestamp());
    Ok(Value::from(duration::print(passed.as_secs())))
}

/// Formats a number of seconds as a Go duration, such as `1h2m3s`.
fn seconds(arguments: &Arguments<'_>) -> Value {
    let seconds = match arguments.value(0) {
        Value::String(text) => text.parse().unwrap_or(0),
        Value::Number(number) => number.as_i64().unwrap_or(0),
        _ => 0,
    };
    Value::from(duration::print(seconds))
}
