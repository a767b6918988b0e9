//! Fields: those of the data, as of a Go struct; those of maps; and a time's methods.

use std::borrow::Cow;

use serde_json::Value;

use super::walk::{Held, Run};
use crate::fault::Fault;
use crate::go::{self, time};

impl<'a> Run<'a> {
    /// The data is a struct, whose fields are known: another one is an error, as in NTH. A map has no other one: nothing.
    pub(super) fn field(&self, value: Held<'a>, name: &str, at: usize) -> Result<Held<'a>, Fault> {
        let is_data = matches!(value, Cow::Borrowed(value) if std::ptr::eq(value, self.data));
        match value {
            Cow::Borrowed(Value::Object(entries)) => match entries.get(name) {
                Some(value) => Ok(Cow::Borrowed(value)),
                None if is_data => Err(Fault::new(at, format!("there is no field {name:?}"))),
                None => Ok(Cow::Owned(Value::Null)),
            },
            Cow::Owned(Value::Object(mut entries)) => Ok(Cow::Owned(entries.remove(name).unwrap_or(Value::Null))),
            value if value.is_null() => Ok(value),
            value => method(&value, name, &[], at),
        }
    }
}

/// A field with arguments, or of what has no fields: of a time it may be a method.
pub(super) fn method<'a>(value: &Value, name: &str, arguments: &[Held<'a>], at: usize) -> Result<Held<'a>, Fault> {
    let arguments: Vec<Value> = arguments.iter().map(|argument| argument.as_ref().clone()).collect();
    let time = if value.is_string() { time::of(value) } else { None };
    match time.and_then(|time| time::method(&time, name, &arguments)) {
        Some(answer) => answer.map(Cow::Owned).map_err(|message| Fault::new(at, message)),
        None => Err(Fault::new(
            at,
            match value {
                Value::Object(entries) if entries.contains_key(name) => {
                    format!("{name:?} takes no arguments: it is no function")
                }
                Value::String(text) => format!("{} is no time, and has no field or method {name:?}", go::shown(text)),
                _ => format!("{} has no field or method {name:?}", go::kind(value)),
            },
        )),
    }
}
