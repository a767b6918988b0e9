//! Formats numbers as Go's `strconv.FormatFloat` does.

use crate::output::Output;

/// Enough digits for the exact value of every `f64`.
const DIGITS: usize = 1_100;

/// Formats a number as `%v` does, with the fewest digits that parse to the same number.
pub(crate) fn shortest(value: f64) -> String {
    general(value, None)
}

/// Formats a number as `%f` does, with `precision` decimals.
pub(crate) fn fixed(value: f64, precision: usize) -> Result<String, String> {
    let mut out = Output::default();
    out.push(&format!("{value:.*}", precision.min(DIGITS)))?;
    out.push_times('0', precision.saturating_sub(DIGITS))?;
    Ok(out.into_text())
}

/// Formats a number as `%e` does, such as `1.5e+06`.
pub(crate) fn scientific(value: f64, precision: usize) -> Result<String, String> {
    let text = format!("{value:.*e}", precision.min(DIGITS));
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let mut out = Output::default();
    out.push(mantissa)?;
    out.push_times('0', precision.saturating_sub(DIGITS))?;
    out.push(&long_exponent(exponent))?;
    Ok(out.into_text())
}

/// Formats a number as `%g` does, with an exponent only for very large and very small numbers.
pub(crate) fn general(value: f64, precision: Option<usize>) -> String {
    let precision = precision.map(|digits| digits.clamp(1, DIGITS));
    let scientific = match precision {
        None => format!("{value:e}"),
        Some(digits) => format!("{value:.*e}", digits - 1),
    };
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent_number: i32 = exponent.parse().unwrap_or(0);
    // Go chooses the exponent of the shortest form as if it had six digits.
    let largest = i32::try_from(precision.unwrap_or(6)).unwrap_or(i32::MAX);
    if exponent_number < -4 || exponent_number >= largest {
        return without_zeros(mantissa).to_owned() + &long_exponent(exponent);
    }
    let decimals = match precision {
        None => return format!("{value}"),
        Some(digits) => i32::try_from(digits).unwrap_or(i32::MAX).saturating_sub(1).saturating_sub(exponent_number),
    };
    without_zeros(&format!("{value:.*}", usize::try_from(decimals).unwrap_or(0))).to_owned()
}

/// Implements the flag `#`: adds a missing decimal point, and zeros until the number has `digits` digits.
pub(crate) fn with_point(text: &str, digits: usize) -> Result<String, String> {
    if !text.starts_with(|first: char| first.is_ascii_digit()) {
        return Ok(text.to_owned());
    }
    let (mantissa, exponent) = text.find('e').map_or((text, ""), |at| text.split_at(at));
    let counted = mantissa.trim_start_matches(['0', '.']).bytes().filter(u8::is_ascii_digit).count();
    let mut out = Output::default();
    out.push(mantissa)?;
    if !mantissa.contains('.') {
        out.push(".")?;
    }
    // A single zero counts as a digit.
    out.push_times('0', digits.saturating_sub(counted + usize::from(mantissa == "0")))?;
    out.push(exponent)?;
    Ok(out.into_text())
}

/// Formats a number as Go's `encoding/json` does.
pub(crate) fn json(value: f64) -> String {
    let size = value.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let text = format!("{value:e}");
        // Go writes 1e+21, and 1e-9 with one digit.
        return if size >= 1e21 { text.replace('e', "e+") } else { text };
    }
    format!("{value}")
}

/// Formats an exponent as Go does, such as `e+05`.
fn long_exponent(exponent: &str) -> String {
    let (sign, digits) = match exponent.strip_prefix('-') {
        Some(digits) => ('-', digits),
        None => ('+', exponent),
    };
    format!("e{sign}{digits:0>2}")
}

fn without_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}
