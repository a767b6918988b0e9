//! One value by one of Go's verbs: `%s`, `%q`, `%d`, `%5.2f`, …

use serde_json::{Number, Value};

use crate::go::{self, display, float, quote};

/// What stands between `%` and the verb.
#[expect(clippy::struct_excessive_bools, reason = "Go's five flags, each of which is there or not")]
#[derive(Debug, Default, Clone)]
pub(super) struct Flags {
    plus: bool,
    left: bool,
    sharp: bool,
    space: bool,
    zero: bool,
    pub(super) width: Option<usize>,
    pub(super) precision: Option<usize>,
}

impl Flags {
    pub(super) fn set(&mut self, flag: u8) {
        match flag {
            b'+' => self.plus = true,
            b'-' => self.left = true,
            b'#' => self.sharp = true,
            b' ' => self.space = true,
            _ => self.zero = true,
        }
    }

    /// A negative width puts the value to the left.
    pub(super) fn set_width(&mut self, width: i64) {
        self.left |= width < 0;
        self.width = usize::try_from(width.unsigned_abs()).ok();
    }

    /// Zeros stand on the left only.
    fn pads_with_zeros(&self) -> bool {
        self.zero && !self.left
    }

    fn sign(&self, negative: bool) -> &'static str {
        match self {
            _ if negative => "-",
            Self { plus: true, .. } => "+",
            Self { space: true, .. } => " ",
            _ => "",
        }
    }
}

/// What stands in the place of what a verb cannot write.
pub(super) fn complaint(verb: char, what: &str) -> String {
    format!("%!{verb}({what})")
}

/// An argument in a complaint: its type and itself.
pub(super) fn described(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        _ => format!("{}={}", go::type_name(value), display::text(value)),
    }
}

/// Appends the value. A list's items and a map's keys and values are each written by the verb.
pub(super) fn write(out: &mut String, value: &Value, verb: char, flags: &Flags) {
    match value {
        _ if verb == 'T' => pad(out, go::type_name(value), flags),
        Value::Null if verb == 'v' => pad(out, "<nil>", flags),
        Value::Bool(truth) if matches!(verb, 't' | 'v') => pad(out, &truth.to_string(), flags),
        Value::String(text) => string(out, text, verb, flags),
        Value::Number(number) => match number.as_f64() {
            Some(fraction) if number.is_f64() => write_fraction(out, fraction, number, verb, flags),
            _ => integer(out, number, verb, flags),
        },
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(' ');
                }
                write_inside(out, item, verb, flags);
            }
            out.push(']');
        }
        Value::Object(entries) => {
            out.push_str("map[");
            for (index, (key, value)) in display::sorted(entries).into_iter().enumerate() {
                if index > 0 {
                    out.push(' ');
                }
                string(out, key, verb, flags);
                out.push(':');
                write_inside(out, value, verb, flags);
            }
            out.push(']');
        }
        Value::Null | Value::Bool(_) => bad(out, value, verb),
    }
}

/// Nothing within a list or a map is written the same by all verbs.
fn write_inside(out: &mut String, value: &Value, verb: char, flags: &Flags) {
    match value {
        Value::Null => out.push_str("<nil>"),
        _ => write(out, value, verb, flags),
    }
}

fn bad(out: &mut String, value: &Value, verb: char) {
    out.push_str(&complaint(verb, &described(value)));
}

fn string(out: &mut String, text: &str, verb: char, flags: &Flags) {
    let cut = || match flags.precision {
        Some(characters) => text.char_indices().nth(characters).map_or(text, |(end, _)| &text[..end]),
        None => text,
    };
    match verb {
        // `%#v` is Go's own spelling of a value.
        'v' if flags.sharp => pad(out, &quote::string(text), flags),
        's' | 'v' => pad(out, cut(), flags),
        'q' if flags.sharp && can_backquote(cut()) => pad(out, &format!("`{}`", cut()), flags),
        'q' if flags.plus => pad(out, &quote::ascii(cut()), flags),
        'q' => pad(out, &quote::string(cut()), flags),
        'x' => pad(out, &bytes(text, flags, |byte| format!("{byte:02x}"), "0x"), flags),
        'X' => pad(out, &bytes(text, flags, |byte| format!("{byte:02X}"), "0X"), flags),
        _ => bad(out, &Value::from(text), verb),
    }
}

fn bytes(text: &str, flags: &Flags, hex: fn(u8) -> String, prefix: &str) -> String {
    let count = flags.precision.unwrap_or(text.len());
    let bytes: Vec<String> = text.bytes().take(count).map(hex).collect();
    match flags {
        _ if bytes.is_empty() => String::new(),
        Flags { space: true, sharp: true, .. } => format!("{prefix}{}", bytes.join(&format!(" {prefix}"))),
        Flags { space: true, .. } => bytes.join(" "),
        Flags { sharp: true, .. } => format!("{prefix}{}", bytes.concat()),
        _ => bytes.concat(),
    }
}

fn can_backquote(text: &str) -> bool {
    text.chars().all(|character| character == '\t' || !character.is_control() && !matches!(character, '`' | '\u{feff}'))
}

fn integer(out: &mut String, number: &Number, verb: char, flags: &Flags) {
    let value = number.as_i128().unwrap_or_default();
    let size = value.unsigned_abs();
    let character = || u32::try_from(value).ok().and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER);
    let (digits, prefix) = match verb {
        'd' | 'v' => (size.to_string(), ""),
        'b' => (format!("{size:b}"), if flags.sharp { "0b" } else { "" }),
        'o' => (format!("{size:o}"), if flags.sharp && size != 0 { "0" } else { "" }),
        'O' => (format!("{size:o}"), "0o"),
        'x' => (format!("{size:x}"), if flags.sharp { "0x" } else { "" }),
        'X' => (format!("{size:X}"), if flags.sharp { "0X" } else { "" }),
        'c' => return pad(out, character().encode_utf8(&mut [0; 4]), flags),
        'q' => return pad(out, &quote::character(character()), flags),
        'U' => return pad(out, &format!("U+{size:04X}"), flags),
        _ => return bad(out, &Value::Number(number.clone()), verb),
    };
    // `%+v` asks for names of fields, not for a sign.
    let sign =
        if verb == 'v' && flags.plus { flags_without_plus(flags).sign(value < 0) } else { flags.sign(value < 0) };
    let least = match (flags.precision, flags.width) {
        (Some(0), _) if value == 0 => return pad(out, "", &Flags { zero: false, ..flags.clone() }),
        (Some(precision), _) => precision,
        (None, Some(width)) if flags.pads_with_zeros() => width.saturating_sub(sign.len()),
        _ => 0,
    };
    let text = format!("{sign}{prefix}{digits:0>least$}");
    pad(out, &text, &Flags { zero: false, ..flags.clone() });
}

fn flags_without_plus(flags: &Flags) -> Flags {
    Flags { plus: false, ..flags.clone() }
}

fn write_fraction(out: &mut String, value: f64, number: &Number, verb: char, flags: &Flags) {
    let size = value.abs();
    let text = match verb {
        'e' => float::scientific(size, flags.precision.unwrap_or(6)),
        'E' => float::scientific(size, flags.precision.unwrap_or(6)).to_uppercase(),
        'f' | 'F' => float::fixed(size, flags.precision.unwrap_or(6)),
        'g' | 'v' => float::general(size, flags.precision, flags.sharp),
        'G' => float::general(size, flags.precision, flags.sharp).to_uppercase(),
        _ => return bad(out, &Value::Number(number.clone()), verb),
    };
    let negative = value.is_sign_negative();
    let sign = if verb == 'v' { flags_without_plus(flags).sign(negative) } else { flags.sign(negative) };
    let zeros = match flags.width {
        Some(width) if flags.pads_with_zeros() => width.saturating_sub(sign.len()),
        _ => 0,
    };
    pad(out, &format!("{sign}{text:0>zeros$}"), flags);
}

/// To the width, in characters.
fn pad(out: &mut String, text: &str, flags: &Flags) {
    let missing = flags.width.unwrap_or(0).saturating_sub(text.chars().count());
    let padding = if flags.pads_with_zeros() { "0" } else { " " }.repeat(missing);
    if flags.left {
        out.push_str(text);
        out.push_str(&padding);
    } else {
        out.push_str(&padding);
        out.push_str(text);
    }
}
