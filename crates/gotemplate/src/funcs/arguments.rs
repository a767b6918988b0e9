//! Converts the arguments of a template function to Rust types.

use std::borrow::Cow;
use std::sync::LazyLock;

use serde_json::{Map, Value};

use crate::budget::Budget;
use crate::go;

/// Empty map for a null argument, because Go reads a nil map as an empty map.
static NO_ENTRIES: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);

/// Arguments of one function call, and the budget of the rendering.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arguments<'a> {
    values: &'a [Cow<'a, Value>],
    budget: &'a Budget,
}

impl<'a> Arguments<'a> {
    pub(crate) fn new(values: &'a [Cow<'a, Value>], budget: &'a Budget) -> Self {
        Self { values, budget }
    }

    /// Subtracts a cost in bytes from the rendering's budget.
    pub(super) fn charge(&self, bytes: usize) -> Result<(), String> {
        self.budget.charge(bytes)
    }

    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    pub(super) fn text(&self, index: usize) -> Result<&'a str, String> {
        match self.value(index) {
            Value::String(text) => Ok(text),
            other => Err(wrong(index, other, "a string")),
        }
    }

    pub(super) fn integer(&self, index: usize) -> Result<i64, String> {
        let value = self.value(index);
        value.as_i64().ok_or_else(|| wrong(index, value, "a whole number"))
    }

    /// Returns an argument as a whole number. Fails for a negative number.
    pub(super) fn count(&self, index: usize) -> Result<usize, String> {
        let count = self.integer(index)?;
        usize::try_from(count).map_err(|_| format!("argument {} is {count}, less than 0", index + 1))
    }

    pub(super) fn boolean(&self, index: usize) -> Result<bool, String> {
        match self.value(index) {
            Value::Bool(truth) => Ok(*truth),
            other => Err(wrong(index, other, "a boolean")),
        }
    }

    pub(super) fn list(&self, index: usize) -> Result<&'a [Value], String> {
        match self.value(index) {
            Value::Array(items) => Ok(items),
            other => Err(wrong(index, other, "a list")),
        }
    }

    pub(super) fn map(&self, index: usize) -> Result<&'a Map<String, Value>, String> {
        match self.value(index) {
            Value::Object(entries) => Ok(entries),
            Value::Null => Ok(&NO_ENTRIES),
            other => Err(wrong(index, other, "a map")),
        }
    }

    /// Returns an argument of any type, or null for a missing argument.
    pub(super) fn value(&self, index: usize) -> &'a Value {
        self.values.get(index).map_or(&Value::Null, AsRef::as_ref)
    }

    /// Returns `true` for a literal or a part of the data, and `false` for a computed value.
    pub(super) fn is_borrowed(&self, index: usize) -> bool {
        matches!(self.values.get(index), Some(Cow::Borrowed(_)))
    }

    /// Returns the arguments from `index` to the last.
    pub(super) fn from(&self, index: usize) -> impl Iterator<Item = &'a Value> + use<'a> {
        self.values.iter().skip(index).map(AsRef::as_ref)
    }
}

fn wrong(index: usize, value: &Value, wanted: &str) -> String {
    format!("argument {} is {}, and should be {wanted}", index + 1, go::kind(value))
}
