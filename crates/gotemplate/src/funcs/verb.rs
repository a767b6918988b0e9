//! Formats a value by a verb of `printf`, such as `d` in `%5d`.

use serde_json::{Number, Value};

use super::flags::Flags;
use crate::go::{self, display, float, quote};
use crate::output::Output;

/// Returns Go's error text for a directive, such as `%!d(MISSING)`.
pub(super) fn error_text(verb: char, what: &str) -> String {
    format!("%!{verb}({what})")
}

/// Returns the type and value of an argument, such as `string=web-0`, for an error text.
pub(super) fn described(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        _ => format!("{}={}", go::type_name(value), display::text(value)),
    }
}

/// Appends the formatted value. Applies the verb to each item of a list, and to each key and value of a map.
pub(super) fn write(out: &mut Output, value: &Value, verb: char, flags: &Flags) -> Result<(), String> {
    match value {
        Value::Null if matches!(verb, 'v' | 'T') => flags.pad(out, "<nil>"),
        _ if verb == 'T' => flags.pad(out, flags.cut(go::type_name(value))),
        Value::Bool(truth) if matches!(verb, 't' | 'v') => flags.pad(out, &truth.to_string()),
        Value::String(text) => write_string(out, text, verb, flags),
        Value::Number(number) => write_number(out, number, verb, flags),
        Value::Array(items) => {
            out.push("[")?;
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(" ")?;
                }
                write_inside(out, item, verb, flags)?;
            }
            out.push("]")
        }
        Value::Object(entries) => {
            out.push("map[")?;
            for (index, (key, value)) in display::sorted(entries).into_iter().enumerate() {
                if index > 0 {
                    out.push(" ")?;
                }
                write_string(out, key, verb, flags)?;
                out.push(":")?;
                write_inside(out, value, verb, flags)?;
            }
            out.push("]")
        }
        Value::Null | Value::Bool(_) => write_bad(out, value, verb, flags),
    }
}

/// Writes an item of a list or a value of a map. Null becomes `<nil>`.
fn write_inside(out: &mut Output, value: &Value, verb: char, flags: &Flags) -> Result<(), String> {
    match value {
        Value::Null => out.push("<nil>"),
        _ => write(out, value, verb, flags),
    }
}

/// Writes Go's error text for a value that the verb cannot format, such as `%!d(string=web-0)`.
fn write_bad(out: &mut Output, value: &Value, verb: char, flags: &Flags) -> Result<(), String> {
    out.push("%!")?;
    out.push(verb.encode_utf8(&mut [0; 4]))?;
    out.push("(")?;
    if value.is_null() {
        out.push("<nil>")?;
    } else {
        out.push(go::type_name(value))?;
        out.push("=")?;
        write(out, value, 'v', flags)?;
    }
    out.push(")")
}

fn write_string(out: &mut Output, text: &str, verb: char, flags: &Flags) -> Result<(), String> {
    let cut = flags.cut(text);
    match verb {
        'v' if flags.go_syntax => flags.pad(out, &quote::string(cut)),
        's' | 'v' => flags.pad(out, cut),
        'q' if flags.sharp && can_backquote(cut) => flags.pad(out, &format!("`{cut}`")),
        'q' if flags.plus => flags.pad(out, &quote::ascii(cut)),
        'q' => flags.pad(out, &quote::string(cut)),
        'x' => flags.pad(out, &bytes(text, flags, b"0123456789abcdef", "0x")?),
        'X' => flags.pad(out, &bytes(text, flags, b"0123456789ABCDEF", "0X")?),
        _ => write_bad(out, &Value::from(text), verb, flags),
    }
}

/// Returns the bytes of a text as hexadecimal digits, for the verbs `x` and `X`.
fn bytes(text: &str, flags: &Flags, digits: &[u8; 16], prefix: &str) -> Result<String, String> {
    let mut out = Output::default();
    for (index, byte) in text.bytes().take(flags.precision.unwrap_or(text.len())).enumerate() {
        if index > 0 && flags.space {
            out.push(" ")?;
        }
        if flags.sharp && (index == 0 || flags.space) {
            out.push(prefix)?;
        }
        for digit in [byte >> 4, byte & 0xf] {
            out.push(char::from(digits[usize::from(digit)]).encode_utf8(&mut [0; 4]))?;
        }
    }
    Ok(out.into_text())
}

/// Returns `true` if the text can be a raw string literal in Go.
fn can_backquote(text: &str) -> bool {
    let fits = |character: char| !character.is_ascii_control() && !matches!(character, '`' | '\u{feff}');
    text.chars().all(|character| character == '\t' || fits(character))
}

fn write_number(out: &mut Output, number: &Number, verb: char, flags: &Flags) -> Result<(), String> {
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
        _ => return write_bad(out, &Value::Number(number.clone()), verb, flags),
    };
    let sign = flags.sign(value < 0);
    let least = match (flags.precision, flags.width) {
        (Some(0), _) if value == 0 => return flags.without_zeros().pad(out, ""),
        (Some(precision), _) => precision,
        (None, Some(width)) if flags.pads_with_zeros() => width.saturating_sub(sign.len()),
        _ => 0,
    };
    let zeros = least.saturating_sub(digits.len());
    // An octal number with a leading zero needs no prefix.
    let says_it = matches!(verb, 'o' | 'O') && (zeros > 0 || size == 0);
    let prefix = if says_it { prefix.trim_end_matches('0') } else { prefix };
    let mut text = Output::default();
    text.push(sign)?;
    text.push(prefix)?;
    text.push_times('0', zeros)?;
    text.push(&digits)?;
    flags.without_zeros().pad(out, &text.into_text())
}

/// Writes a number as a code point such as `U+0041`. The flag `#` adds the character.
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
        _ => return write_bad(out, &Value::Number(number.clone()), verb, flags),
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
