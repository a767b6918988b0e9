//! The receipt as one wide line of the log.

use jiff::Timestamp;
use serde::Serialize;

use crate::receipt::{Ending, Receipt};

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Line<'a> {
    timestamp: Timestamp,
    level: &'static str,
    message: String,
    #[serde(flatten)]
    receipt: &'a Receipt,
}

/// The line. It has the timestamp and the level that Lambda needs to filter by level.
pub(super) fn line(receipt: &Receipt, now: Timestamp) -> String {
    let (level, ending) = match receipt.ending {
        Some(Ending::Drained) => ("INFO", "drained"),
        Some(Ending::Joined) => ("INFO", "joined"),
        Some(Ending::Ignored) => ("INFO", "ignored"),
        Some(Ending::Continued) => ("INFO", "continued"),
        Some(Ending::Done) => ("INFO", "done"),
        Some(Ending::Failed) => ("ERROR", "failed"),
        None => ("ERROR", "without an ending"),
    };
    let message = format!("{ending}: {}", receipt.reason);
    let line = Line { timestamp: now, level, message, receipt };
    serde_json::to_string(&line).expect("a receipt is plain data with string keys")
}

#[cfg(test)]
mod tests {
    use schemars::generate::SchemaSettings;
    use serde_json::{Value, json};

    use super::Line;

    /// The types' own schema, which lets nothing through that they do not have.
    fn schema() -> Value {
        let settings = SchemaSettings::draft2020_12().for_serialize();
        let mut schema = settings.into_generator().into_root_schema_for::<Line<'_>>().to_value();
        close(&mut schema);
        schema["title"] = json!("Spillway's receipt, as a line of the log");
        schema
    }

    fn close(schema: &mut Value) {
        match schema {
            Value::Object(object) => {
                if object.contains_key("properties") {
                    object.insert("additionalProperties".to_owned(), json!(false));
                }
                object.values_mut().for_each(close);
            }
            Value::Array(items) => items.iter_mut().for_each(close),
            _ => {}
        }
    }

    #[test]
    fn the_schema_in_the_documents_is_that_of_the_types() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/receipt.schema.json");
        let written = std::fs::read_to_string(path).unwrap_or_default();
        let schema = serde_json::to_string_pretty(&schema()).expect("plain data") + "\n";
        assert!(written == schema, "docs/receipt.schema.json is another schema than this:\n{schema}");
    }
}
