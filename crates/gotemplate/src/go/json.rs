//! JSON as Go's `encoding/json` writes it: keys in order, whole numbers without a point, `<`, `>` and `&` escaped.

use serde_json::Value;

use super::{display, float};

/// How it is laid out.
#[derive(Clone, Copy)]
pub(crate) enum Layout {
    OneLine,
    /// Two spaces a level.
    Pretty,
}

/// Whether a browser may read it: Go's default is to escape what HTML would.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Escape {
    Html,
    Nothing,
}

pub(crate) fn text(value: &Value, layout: Layout, escape: Escape) -> String {
    let mut writer = Writer { out: String::new(), layout };
    writer.write(value, 0);
    match escape {
        Escape::Nothing => writer.out,
        // They stand in strings only, so the text can be searched as a whole.
        Escape::Html => writer.out.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026"),
    }
}

struct Writer {
    out: String,
    layout: Layout,
}

impl Writer {
    fn write(&mut self, value: &Value, level: usize) {
        match value {
            Value::Number(number) => match number.as_f64() {
                Some(fraction) if number.is_f64() => self.out.push_str(&float::json(fraction)),
                _ => self.out.push_str(&number.to_string()),
            },
            Value::Array(items) if items.is_empty() => self.out.push_str("[]"),
            Value::Array(items) => {
                self.out.push('[');
                for (index, item) in items.iter().enumerate() {
                    self.part(index, level + 1);
                    self.write(item, level + 1);
                }
                self.line(level);
                self.out.push(']');
            }
            Value::Object(entries) if entries.is_empty() => self.out.push_str("{}"),
            Value::Object(entries) => {
                self.out.push('{');
                for (index, (key, value)) in display::sorted(entries).into_iter().enumerate() {
                    self.part(index, level + 1);
                    self.string(key);
                    self.out.push_str(match self.layout {
                        Layout::OneLine => ":",
                        Layout::Pretty => ": ",
                    });
                    self.write(value, level + 1);
                }
                self.line(level);
                self.out.push('}');
            }
            Value::String(text) => self.string(text),
            Value::Null | Value::Bool(_) => self.out.push_str(&value.to_string()),
        }
    }

    fn string(&mut self, text: &str) {
        let quoted = Value::from(text).to_string();
        // JavaScript takes these two for line ends.
        self.out.push_str(&quoted.replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029"));
    }

    fn part(&mut self, index: usize, level: usize) {
        if index > 0 {
            self.out.push(',');
        }
        self.line(level);
    }

    fn line(&mut self, level: usize) {
        if let Layout::Pretty = self.layout {
            self.out.push('\n');
            self.out.push_str(&"  ".repeat(level));
        }
    }
}
