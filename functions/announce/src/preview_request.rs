//! Answers requests of `spillway preview`: renders messages about sample drains without sending them.

use serde_json::{Value, json};

use crate::preview::Preview;

/// Field that marks a payload as a preview request.
const FIELD: &str = "spillway-preview";

/// Renders the messages for a preview request, or describes the error. Returns `None` for any other payload.
pub(crate) fn answer(payload: &Value) -> Option<Value> {
    let request = payload.get(FIELD)?;
    let text = |name: &str| request[name].as_str();
    let preview = match (text("template"), text("document")) {
        (Some(template), _) => Preview::of_template(template),
        (None, Some(document)) => Preview::of_document(document),
        (None, None) => Preview::named(text("format").unwrap_or("slack")),
    };
    Some(match preview.and_then(|preview| preview.render()) {
        Ok(messages) => json!({"messages": messages}),
        Err(error) => json!({"error": error}),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_is_rendered_and_any_other_payload_is_not() {
        let answered = |request: Value| answer(&json!({FIELD: request})).expect("an answer");
        for request in [json!({}), json!({"format": "text"}), json!({"template": "{{ .Kind }}"})] {
            let messages = answered(request)["messages"].as_str().expect("messages").to_owned();
            assert!(messages.starts_with("--- A drain begins\n"), "{messages}");
        }
        let document = r#"{"url": "https://hooks.example", "template": "{{ .NoSuchField }}"}"#;
        assert!(answered(json!({"document": document}))["error"].is_string());
        assert_eq!(answer(&json!({"Records": []})), None);
    }
}
