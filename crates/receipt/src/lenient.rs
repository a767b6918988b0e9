//! How what a newer version writes is read: what this one does not know is as if it were not there.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// The value, if this version knows it.
pub(crate) fn known<'de, D: Deserializer<'de>, T: DeserializeOwned>(written: D) -> Result<Option<T>, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(written)?).ok())
}

/// Those of the values that this version knows.
pub(crate) fn known_ones<'de, D: Deserializer<'de>, T: DeserializeOwned>(written: D) -> Result<Vec<T>, D::Error> {
    let values: Vec<Value> = known(written)?.unwrap_or_default();
    Ok(values.into_iter().filter_map(|value| serde_json::from_value(value).ok()).collect())
}
