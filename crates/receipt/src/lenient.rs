//! Deserializes receipts of newer versions. Unknown values are treated as absent.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Reads a value. Returns `None` if this version of Spillway does not know the value.
pub(crate) fn known<'de, D: Deserializer<'de>, T: DeserializeOwned>(written: D) -> Result<Option<T>, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(written)?).ok())
}

/// Reads a list, and drops the values that this version of Spillway does not know.
pub(crate) fn known_ones<'de, D: Deserializer<'de>, T: DeserializeOwned>(written: D) -> Result<Vec<T>, D::Error> {
    let values: Vec<Value> = known(written)?.unwrap_or_default();
    Ok(values.into_iter().filter_map(|value| serde_json::from_value(value).ok()).collect())
}
