//! One value by one of Go's verbs: `%s`, `%q`, `%d`, `%5.2f`, …

use serde_json::{Number, Value};

use super::flags::Flags;
use super::number_verb;
use crate::go::{self, display, quote};
use crate::output::Output;

/// What stands in the place of what a verb cannot write.
pub(super) fn complaint(verb: char, what: &str) -> String {
    format!("%!{verb}({what})")
}

/// An argument in a complaint about no verb: its type and itself.
pub(super) fn described(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        _ => format!("{}={}", go::type_name(value), display::text(value)),
    }
}

/// Appends the value. A list's items and a map's keys and values are each written by the verb.
pub(super) fn write(out: &mut Output, value: &Value, verb: char, flags: &Flags) -> Result<(), String> {
    match value {
        Value::Null if matches!(verb, 'v' | 'T') => flags.pad(out, "<nil>"),
        _ if verb == 'T' => flags.pad(out, flags.cut(go::type_name(value))),
        Value::Bool(truth) if matches!(verb, 't' | 'v') => flags.pad(out, &truth.to_string()),
        Value::String(text) => write_string(out, text, verb, flags),
        Value::Number(number) => number_verb::write(out, number, verb, flags),
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

/// Nothing within a list or a map is written the same by all verbs.
fn write_inside(out: &mut Output, value: &Value, verb: char, flags: &Flags) -> Result<(), String> {
    match value {
        Value::Null => out.push("<nil>"),
        _ => write(out, value, verb, flags),
    }
}

/// What the verb cannot write: its type, and itself by the same flags.
pub(super) fn write_bad(out: &mut Output, value: &Value, verb: char, flags: &Flags) -> Result<(), String> {
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

pub(super) fn write_bad_number(out: &mut Output, number: &Number, verb: char, flags: &Flags) -> Result<(), String> {
    write_bad(out, &Value::Number(number.clone()), verb, flags)
}

fn write_string(out: &mut Output, text: &str, verb: char, flags: &Flags) -> Result<(), String> {
    let cut = flags.cut(text);
    match verb {
        'v' if flags.spelled => flags.pad(out, &quote::string(cut)),
        's' | 'v' => flags.pad(out, cut),
        'q' if flags.sharp && can_backquote(cut) => flags.pad(out, &format!("`{cut}`")),
        'q' if flags.plus => flags.pad(out, &quote::ascii(cut)),
        'q' => flags.pad(out, &quote::string(cut)),
        'x' => flags.pad(out, &bytes(text, flags, b"0123456789abcdef", "0x")?),
        'X' => flags.pad(out, &bytes(text, flags, b"0123456789ABCDEF", "0X")?),
        _ => write_bad(out, &Value::from(text), verb, flags),
    }
}

/// Two digits for each byte. A space parts them, and a sharp puts the prefix before each that stands alone.
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

/// Whether it stands in backquotes as it is: no backquote, no byte order mark, and of ASCII's control characters only a tab.
fn can_backquote(text: &str) -> bool {
    let fits = |character: char| !character.is_ascii_control() && !matches!(character, '`' | '\u{feff}');
    text.chars().all(|character| character == '\t' || fits(character))
}
