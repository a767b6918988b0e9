//! Writes JSON as Go's `encoding/json` does.

use std::borrow::Cow;

use serde_json::Value;

use super::{display, float, time};
use crate::output::Output;

#[derive(Clone, Copy)]
pub(crate) enum Layout {
    OneLine,
    /// Several lines, with two spaces of indentation for each level.
    Pretty,
}

/// Escaping of `<`, `>` and `&` in JSON output.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Escape {
    Html,
    Nothing,
}

/// Returns a value as JSON. A string that is a time in Go's print format becomes a time in RFC 3339.
pub(crate) fn text(value: &Value, layout: Layout, escape: Escape) -> Result<String, String> {
    let mut writer = Writer { out: Output::default(), layout, escape };
    writer.write(value, 0)?;
    Ok(writer.out.into_text())
}

struct Writer {
    out: Output,
    layout: Layout,
    escape: Escape,
}

impl Writer {
    fn write(&mut self, value: &Value, level: usize) -> Result<(), String> {
        match value {
            Value::Number(number) => match number.as_f64() {
                Some(fraction) if number.is_f64() => self.out.push(&float::json(fraction)),
                _ => self.out.push(&number.to_string()),
            },
            Value::Array(items) if items.is_empty() => self.out.push("[]"),
            Value::Array(items) => {
                self.out.push("[")?;
                for (index, item) in items.iter().enumerate() {
                    self.part(index, level + 1)?;
                    self.write(item, level + 1)?;
                }
                self.line(level)?;
                self.out.push("]")
            }
            Value::Object(entries) if entries.is_empty() => self.out.push("{}"),
            Value::Object(entries) => {
                self.out.push("{")?;
                for (index, (key, value)) in display::sorted(entries).into_iter().enumerate() {
                    self.part(index, level + 1)?;
                    self.string(key)?;
                    self.out.push(match self.layout {
                        Layout::OneLine => ":",
                        Layout::Pretty => ": ",
                    })?;
                    self.write(value, level + 1)?;
                }
                self.line(level)?;
                self.out.push("}")
            }
            Value::String(text) => match time::in_json(text) {
                Some(time) => self.string(&time),
                None => self.string(text),
            },
            Value::Null => self.out.push("null"),
            Value::Bool(truth) => self.out.push(if *truth { "true" } else { "false" }),
        }
    }

    fn string(&mut self, text: &str) -> Result<(), String> {
        self.out.push("\"")?;
        let mut plain = 0;
        for (index, character) in text.char_indices() {
            if let Some(escaped) = self.escaped(character) {
                self.out.push(&text[plain..index])?;
                self.out.push(&escaped)?;
                plain = index + character.len_utf8();
            }
        }
        self.out.push(&text[plain..])?;
        self.out.push("\"")
    }

    /// Returns the escape sequence of a character, or `None` if the character stays unchanged.
    fn escaped(&self, character: char) -> Option<Cow<'static, str>> {
        match character {
            '"' => Some("\\\"".into()),
            '\\' => Some("\\\\".into()),
            '\n' => Some("\\n".into()),
            '\r' => Some("\\r".into()),
            '\t' => Some("\\t".into()),
            '\u{8}' => Some("\\b".into()),
            '\u{c}' => Some("\\f".into()),
            // U+2028 and U+2029 are line ends in JavaScript.
            '\0'..' ' | '\u{2028}' | '\u{2029}' => Some(numbered(character)),
            '<' | '>' | '&' if self.escape == Escape::Html => Some(numbered(character)),
            _ => None,
        }
    }

    fn part(&mut self, index: usize, level: usize) -> Result<(), String> {
        if index > 0 {
            self.out.push(",")?;
        }
        self.line(level)
    }

    fn line(&mut self, level: usize) -> Result<(), String> {
        if let Layout::Pretty = self.layout {
            self.out.push("\n")?;
            self.out.push_times(' ', 2 * level)?;
        }
        Ok(())
    }
}

fn numbered(character: char) -> Cow<'static, str> {
    format!("\\u{:04x}", u32::from(character)).into()
}
