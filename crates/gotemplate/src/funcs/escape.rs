//! Text for where it goes: HTML, JavaScript, URLs, base64, quotes.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::arguments::{self, Arguments};
use super::builtin::sprint;
use super::{Function, at_least, exactly};
use crate::go::{display, quote};

pub(super) static FUNCTIONS: [Function; 7] = [
    at_least("html", 1, |arguments| Ok(Value::from(html(&sprint(arguments))))),
    at_least("js", 1, |arguments| Ok(Value::from(js(&sprint(arguments))))),
    at_least("urlquery", 1, |arguments| Ok(Value::from(url_query(&sprint(arguments))))),
    at_least("quote", 0, |arguments| Ok(joined(arguments, |value| quote::string(&display::text(value))))),
    at_least("squote", 0, |arguments| Ok(joined(arguments, |value| format!("'{}'", display::text(value))))),
    exactly("b64enc", 1, |arguments| Ok(Value::from(STANDARD.encode(arguments::text(arguments, 0)?)))),
    exactly("b64dec", 1, base64_decode),
];

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

/// Those that are something, with a space in between.
fn joined(arguments: &Arguments<'_>, quote: fn(&Value) -> String) -> Value {
    let quoted: Vec<String> = arguments::from(arguments, 0).filter(|value| !value.is_null()).map(quote).collect();
    Value::from(quoted.join(" "))
}

/// sprig prints what is wrong with it; bytes that are no text are replaced.
fn base64_decode(arguments: &Arguments<'_>) -> Result<Value, String> {
    let bytes = STANDARD.decode(arguments::text(arguments, 0)?).map_err(|_| "this is not base64".to_owned())?;
    Ok(Value::from(String::from_utf8_lossy(&bytes)))
}
