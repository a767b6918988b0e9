//! Text for where it goes: HTML, JavaScript, URLs, base64, quotes.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::arguments::Arguments;
use super::{Function, at_least, exactly};
use crate::bounds;
use crate::go::{display, quote};
use crate::output::Output;

pub(super) static FUNCTIONS: [Function; 7] = [
    at_least("html", 1, |arguments| escaped(arguments, html)),
    at_least("js", 1, |arguments| escaped(arguments, js)),
    at_least("urlquery", 1, |arguments| escaped(arguments, url_query)),
    at_least("quote", 0, |arguments| joined(arguments, |value| quote::string(&display::text(value)))),
    at_least("squote", 0, |arguments| joined(arguments, |value| format!("'{}'", display::text(value)))),
    exactly("b64enc", 1, |arguments| Ok(Value::from(STANDARD.encode(arguments.text(0)?)))),
    exactly("b64dec", 1, base64_decode),
];

/// As `print` writes the arguments, but for nothing, which is written as where it stands alone.
fn escaped(arguments: &Arguments<'_>, escape: fn(&str) -> String) -> Result<Value, String> {
    let mut out = String::new();
    let mut after_text = true;
    for argument in arguments.from(0) {
        let is_text = argument.is_string() || argument.is_null();
        if !is_text && !after_text {
            out.push(' ');
        }
        out.push_str(&display::action(argument));
        after_text = is_text;
    }
    // What it becomes is no shorter.
    bounds::room(out.len())?;
    Ok(Value::from(escape(&out)))
}

fn html(text: &str) -> String {
    let escaped = text.chars().map(|character| match character {
        '\0' => "\u{fffd}".to_owned(),
        '"' => "&#34;".to_owned(),
        '\'' => "&#39;".to_owned(),
        '&' => "&amp;".to_owned(),
        '<' => "&lt;".to_owned(),
        '>' => "&gt;".to_owned(),
        other => other.to_string(),
    });
    escaped.collect()
}

fn js(text: &str) -> String {
    let escaped = text.chars().map(|character| match character {
        '\\' | '\'' | '"' => format!("\\{character}"),
        '<' | '>' | '&' | '=' => numbered(character),
        _ if character >= ' ' && (character.is_ascii() || quote::is_print(character)) => character.to_string(),
        _ => numbered(character),
    });
    escaped.collect()
}

fn numbered(character: char) -> String {
    format!("\\u{:04X}", u32::from(character))
}

fn url_query(text: &str) -> String {
    let escaped = text.bytes().map(|byte| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        b' ' => "+".to_owned(),
        _ => format!("%{byte:02X}"),
    });
    escaped.collect()
}

/// The arguments that are something, quoted, with a space in between.
fn joined(arguments: &Arguments<'_>, quote: fn(&Value) -> String) -> Result<Value, String> {
    let mut out = Output::default();
    for value in arguments.from(0).filter(|value| !value.is_null()) {
        if out.len() > 0 {
            out.push(" ")?;
        }
        out.push(&quote(value))?;
    }
    Ok(Value::from(out.into_text()))
}

/// sprig prints what is wrong with it; bytes that are no text are replaced.
fn base64_decode(arguments: &Arguments<'_>) -> Result<Value, String> {
    let bytes = STANDARD.decode(arguments.text(0)?).map_err(|_| "this is not base64".to_owned())?;
    Ok(Value::from(String::from_utf8_lossy(&bytes)))
}
