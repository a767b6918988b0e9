//! Fields: those of the data, as of a Go struct; those of maps; and a time's methods.

use std::borrow::Cow;

use serde_json::Value;

use super::walk::{Held, Run};
use crate::bounds;
use crate::fault::Fault;
use crate::go::{self, time};

/// The work of reading a time, and of writing it.
const METHOD: usize = 16 * bounds::STEP;

impl<'a> Run<'a> {
    /// A field. The data is a struct, whose fields are known: another one is an error. A map has no other one: nothing.
    pub(super) fn field(&self, value: Held<'a>, name: &str, at: usize) -> Result<Held<'a>, Fault> {
        self.charge(bounds::STEP, at)?;
        let is_data = matches!(value, Cow::Borrowed(value) if std::ptr::eq(value, self.data));
        match value {
            Cow::Borrowed(Value::Object(entries)) => match entries.get(name) {
                Some(value) => Ok(Cow::Borrowed(value)),
                None if is_data => Err(Fault::new(at, format!("there is no field {name:?}"))),
                None => Ok(Cow::Owned(Value::Null)),
            },
            Cow::Owned(Value::Object(mut entries)) => Ok(Cow::Owned(entries.remove(name).unwrap_or(Value::Null))),
            value if value.is_null() => Ok(value),
            value => self.method(&value, name, &[], at),
        }
    }

    /// A field with arguments, or of what has no fields: of a time it may be a method.
    pub(super) fn method(
        &self,
        value: &Value,
        name: &str,
        arguments: &[Held<'a>],
        at: usize,
    ) -> Result<Held<'a>, Fault> {
        self.charge(METHOD, at)?;
        let mut values = Vec::with_capacity(arguments.len());
        for argument in arguments {
            let weight = self.charge_value(argument, at)?;
            // A layout takes more than its bytes.
            self.charge(weight.saturating_mul(bounds::LAYOUT), at)?;
            values.push(argument.as_ref().clone());
        }
        let time = if value.is_string() { time::of(value) } else { None };
        match time.and_then(|time| time::method(&time, name, &values)) {
            Some(answer) => {
                let answer = answer.map_err(Fault::at(at))?;
                self.charge_value(&answer, at)?;
                Ok(Cow::Owned(answer))
            }
            None => Err(Fault::new(at, no_method(value, name))),
        }
    }
}

fn no_method(value: &Value, name: &str) -> String {
    match value {
        Value::Object(entries) if entries.contains_key(name) => {
            format!("{name:?} takes no arguments: it is no function")
        }
        Value::String(text) => format!("{} is no time, and has no field or method {name:?}", go::shown(text)),
        _ => format!("{} has no field or method {name:?}", go::kind(value)),
    }
}
