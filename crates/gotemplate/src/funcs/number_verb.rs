//! A number by one of Go's verbs: `%d`, `%x`, `%c`, `%U`, `%5.2f`, …

use serde_json::Number;

use super::flags::Flags;
use super::verb::write_bad_number;
use crate::go::{float, quote};
use crate::output::Output;

pub(super) fn write(out: &mut Output, number: &Number, verb: char, flags: &Flags) -> Result<(), String> {
    match number.as_f64() {
        Some(fraction) if number.is_f64() => write_fraction(out, fraction, number, verb, flags),
        _ => write_integer(out, number, verb, flags),
    }
}

fn write_integer(out: &mut Output, number: &Number, verb: char, flags: &Flags) -> Result<(), String> {
    let value = number.as_i128().unwrap_or_default();
    let size = value.unsigned_abs();
    let character = || u32::try_from(value).ok().and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER);
    let sharp = |prefix| if flags.sharp { prefix } else { "" };
    let (digits, prefix) = match verb {
        'd' | 'v' => (size.to_string(), ""),
        'b' => (format!("{size:b}"), sharp("0b")),
        'o' => (format!("{size:o}"), sharp("0")),
        'O' => (format!("{size:o}"), if flags.sharp { "0o0" } else { "0o" }),
        'x' => (format!("{size:x}"), sharp("0x")),
        'X' => (format!("{size:X}"), sharp("0X")),
        'c' => return flags.pad(out, character().encode_utf8(&mut [0; 4])),
        'q' if flags.plus => return flags.pad(out, &quote::ascii_character(character())),
        'q' => return flags.pad(out, &quote::character(character())),
        'U' => return write_code(out, number, flags),
        _ => return write_bad_number(out, number, verb, flags),
    };
    let sign = flags.sign(value < 0);
    let least = match (flags.precision, flags.width) {
        (Some(0), _) if value == 0 => return flags.without_zeros().pad(out, ""),
        (Some(precision), _) => precision,
        (None, Some(width)) if flags.pads_with_zeros() => width.saturating_sub(sign.len()),
        _ => 0,
    };
    let zeros = least.saturating_sub(digits.len());
    // An octal number that begins with a zero says already what it is.
    let says_it = matches!(verb, 'o' | 'O') && (zeros > 0 || size == 0);
    let prefix = if says_it { prefix.trim_end_matches('0') } else { prefix };
    let mut text = Output::default();
    text.push(sign)?;
    text.push(prefix)?;
    text.push_times('0', zeros)?;
    text.push(&digits)?;
    flags.without_zeros().pad(out, &text.into_text())
}

/// `U+0041`, and with a sharp the character too. A negative number is written as the bits that it has.
fn write_code(out: &mut Output, number: &Number, flags: &Flags) -> Result<(), String> {
    let bits = number.as_u64().or_else(|| number.as_i64().map(i64::cast_unsigned)).unwrap_or_default();
    let digits = format!("{bits:X}");
    let mut text = Output::default();
    text.push("U+")?;
    text.push_times('0', flags.precision.unwrap_or(0).max(4).saturating_sub(digits.len()))?;
    text.push(&digits)?;
    let character = u32::try_from(bits).ok().and_then(char::from_u32);
    if let Some(character) = character.filter(|character| flags.sharp && quote::is_print(*character)) {
        text.push(&format!(" '{character}'"))?;
    }
    flags.without_zeros().pad(out, &text.into_text())
}

fn write_fraction(out: &mut Output, value: f64, number: &Number, verb: char, flags: &Flags) -> Result<(), String> {
    let size = value.abs();
    let precision = flags.precision;
    let text = match verb {
        'e' | 'E' => float::scientific(size, precision.unwrap_or(6))?,
        'f' | 'F' => float::fixed(size, precision.unwrap_or(6))?,
        'g' | 'G' | 'v' => float::general(size, precision),
        _ => return write_bad_number(out, number, verb, flags),
    };
    let text = match (flags.sharp, verb) {
        (false, _) => text,
        (true, 'g' | 'G' | 'v') => float::with_point(&text, precision.unwrap_or(6))?,
        (true, _) => float::with_point(&text, 0)?,
    };
    let text = if matches!(verb, 'E' | 'G') { text.to_uppercase() } else { text };
    let sign = flags.sign(value.is_sign_negative());
    let zeros = match flags.width {
        Some(width) if flags.pads_with_zeros() => width.saturating_sub(sign.len() + text.len()),
        _ => 0,
    };
    let mut padded = Output::default();
    padded.push(sign)?;
    padded.push_times('0', zeros)?;
    padded.push(&text)?;
    flags.pad(out, &padded.into_text())
}
