//! For tests: compares the JSON Schemas in `docs/` with schemas that are generated from the types.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

/// Panics if the file in `docs/` is not the JSON Schema of `T`. The schema must forbid additional properties.
pub fn is_documented<T: JsonSchema>(file: &str, title: &str) {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    close(&mut schema);
    schema["title"] = json!(title);
    let schema = serde_json::to_string_pretty(&schema).expect("a schema is plain JSON") + "\n";
    let written = std::fs::read_to_string(format!("{}/../../docs/{file}", env!("CARGO_MANIFEST_DIR")));
    assert!(written.unwrap_or_default() == schema, "docs/{file} differs from the schema of the type:\n{schema}");
}

fn close(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            // Defaults concern readers; the schema describes what is written.
            object.remove("default");
            if object.contains_key("properties") {
                object.insert("additionalProperties".to_owned(), json!(false));
            }
            object.values_mut().for_each(close);
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}
