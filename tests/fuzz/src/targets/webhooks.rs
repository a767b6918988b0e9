//! Documents of webhooks: errors contain no secret, and valid documents make messages.

use serde_json::{Value, json};
use spillway_announce::preview::Preview;

use crate::{Target, seeds};

/// Mark in each text that may be a secret.
const SECRET: &str = "\u{1f92b}hush";

pub(super) const TARGET: Target = Target {
    name: "webhooks",
    seeds: || {
        let shown = seeds::shown_by("docs/announcements.md").into_iter();
        let plain = json!({
            "url": "https://hooks.example/T1", "proxy": "http://user:word@proxy.example:3128", "format": "json",
            "headers": {"Authorization": "Bearer word"},
        });
        shown.filter(|text| Preview::of_document(text).is_ok()).chain([plain.to_string()]).collect()
    },
    examine: |input| {
        let Ok(text) = str::from_utf8(input) else { return };
        match Preview::of_document(text).and_then(|preview| preview.render()) {
            Ok(shown) => assert!(!shown.is_empty()),
            Err(why) => assert!(!why.is_empty() && why.len() < 8_000 + 2 * text.len(), "{why}"),
        }
        if let Ok(document) = serde_json::from_str(text)
            && !text.contains(SECRET)
            && let Err(why) = Preview::of_document(&with_secrets(document).to_string())
        {
            assert!(!why.contains(SECRET), "{why}");
        }
    },
};

/// Adds the mark to each text except the template, which errors quote.
fn with_secrets(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(text + SECRET),
        Value::Array(items) => items.into_iter().map(with_secrets).collect(),
        Value::Object(fields) => {
            let secret = |(name, value): (String, Value)| {
                let value = if name == "template" { value } else { with_secrets(value) };
                (name, value)
            };
            fields.into_iter().map(secret).collect()
        }
        other => other,
    }
}
