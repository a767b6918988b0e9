//! Parses and formats durations such as `1h2m3s`.

use jiff::SignedDuration;

/// Units of a duration in nanoseconds. `ms` precedes `m`, because the first match is used.
const UNITS: [(&str, i128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Parses a duration such as `1h30m`, `-1.5h`, `.5s`, `10s4m` or `0`.
pub(crate) fn parse(text: &str) -> Option<SignedDuration> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(SignedDuration::ZERO);
    }
    let mut total: i128 = 0;
    let mut first = true;
    while first || !rest.is_empty() {
        first = false;
        let (number, after) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len()));
        let (name, unit) = UNITS.iter().find(|(name, _)| after.starts_with(name))?;
        rest = &after[name.len()..];
        total = total.checked_add(nanoseconds(number, *unit)?)?;
    }
    let total = i64::try_from(if negative { -total } else { total }).ok()?;
    Some(SignedDuration::from_nanos(total))
}

/// Multiplies a decimal number by a unit in nanoseconds. Drops fractions of a nanosecond.
fn nanoseconds(number: &str, unit: i128) -> Option<i128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse::<u64>().ok()?.into() };
    let mut part = unit;
    let mut nanoseconds = whole * unit;
    for digit in fraction.chars() {
        let digit = digit.to_digit(10)?;
        // Once `part` is 0, further digits add nothing.
        nanoseconds += part * i128::from(digit) / 10;
        part /= 10;
    }
    Some(nanoseconds)
}

/// Formats a number of seconds as a Go duration, such as `1h2m3s`.
pub(crate) fn print(seconds: i64) -> String {
    let sign = if seconds < 0 { "-" } else { "" };
    let total = seconds.unsigned_abs();
    let (hours, minutes, seconds) = (total / 3600, total / 60 % 60, total % 60);
    match (hours, minutes) {
        (0, 0) => format!("{sign}{seconds}s"),
        (0, _) => format!("{sign}{minutes}m{seconds}s"),
        _ => format!("{sign}{hours}h{minutes}m{seconds}s"),
    }
}
