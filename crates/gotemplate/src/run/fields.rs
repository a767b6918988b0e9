//! Evaluates fields of maps and methods of times.

use std::borrow::Cow;

use serde_json::Value;

use super::walk::{Held, Run};
use crate::bounds;
use crate::fault::Fault;
use crate::go::{self, time};

/// Cost of a method call on a Go `time.Time`, such as `.Format`, in bytes of [`bounds::WORK`].
const METHOD: usize = 16 * bounds::STEP;

impl<'a> Run<'a> {
    /// Returns a field of a value. A missing field is null in a map, but an error in the top-level data.
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

    /// Calls a method of Go's `time.Time`, such as `.Format`, on `value`. Fails if `value` is not a time.
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
            // A method's argument is a layout, which costs a multiple of its bytes.
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
