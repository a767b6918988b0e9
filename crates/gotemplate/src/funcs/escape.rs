//! Template functions that escape, quote or encode text.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::arguments::Arguments;
use super::{Function, at_least, exactly};
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

/// Joins the arguments as `print` does, and escapes each character. Null becomes `<no value>`.
fn escaped(arguments: &Arguments<'_>, escape: fn(&mut Output, char) -> Result<(), String>) -> Result<Value, String> {
    let mut out = Output::default();
    let mut after_text = true;
    for argument in arguments.from(0) {
        let is_text = argument.is_string() || argument.is_null();
        if !is_text && !after_text {
            escape(&mut out, ' ')?;
        }
        for character in display::action(argument).chars() {
            escape(&mut out, character)?;
        }
        after_text = is_text;
    }
    Ok(Value::from(out.into_text()))
}

fn html(out: &mut Output, character: char) -> Result<(), String> {
    match character {
        '\0' => out.push("\u{fffd}"),
        '"' => out.push("&#34;"),
        '\'' => out.push("&#39;"),
        '&' => out.push("&amp;"),
        '<' => out.push("&lt;"),
        '>' => out.push("&gt;"),
        other => out.push_times(other, 1),
    }
}

fn js(out: &mut Output, character: char) -> Result<(), String> {
    let is_plain = character >= ' ' && (character.is_ascii() || quote::is_print(character));
    match character {
        '\\' | '\'' | '"' => {
            out.push("\\")?;
            out.push_times(character, 1)
        }
        '<' | '>' | '&' | '=' => out.push(&numbered(character)),
        _ if is_plain => out.push_times(character, 1),
        _ => out.push(&numbered(character)),
    }
}

fn numbered(character: char) -> String {
    format!("\\u{:04X}", u32::from(character))
}

fn url_query(out: &mut Output, character: char) -> Result<(), String> {
    match character {
        'A'..='Z' | 'a'..='z' | '0'..='9' | '-' | '_' | '.' | '~' => out.push_times(character, 1),
        ' ' => out.push("+"),
        _ => character.encode_utf8(&mut [0; 4]).bytes().try_for_each(|byte| out.push(&format!("%{byte:02X}"))),
    }
}

/// Quotes each argument except null, and joins the quoted arguments with spaces.
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

/// Decodes base64 to text. Replaces bytes that are not UTF-8.
fn base64_decode(arguments: &Arguments<'_>) -> Result<Value, String> {
    let bytes = STANDARD.decode(arguments.text(0)?).map_err(|_| "this is not base64".to_owned())?;
    Ok(Value::from(String::from_utf8_lossy(&bytes)))
}
