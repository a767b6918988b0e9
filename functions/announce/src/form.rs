//! Format of the webhook's messages.

use gotemplate_json::Template;
use serde_json::json;

use crate::group::Message;
use crate::{json, slack, template, text, words};

/// Maximum characters of a text, because Google Chat accepts at most 4,096.
const TEXT: usize = 4_000;

#[derive(Debug)]
pub(crate) enum Form {
    Slack,
    Json,
    /// `{"text": …}` for Google Chat, Mattermost and Rocket.Chat.
    Text,
    Template(Template),
}

impl Form {
    /// Returns the body of the HTTP request. If the template fails, returns plain JSON with the error.
    pub(crate) fn body(&self, message: &Message<'_>) -> String {
        match self {
            Self::Slack => slack::message(message).to_string(),
            Self::Json => json::body(message),
            Self::Text => json!({"text": words::clip(&text::body(message), TEXT)}).to_string(),
            Self::Template(template) => template.render(&template::fields(message)).unwrap_or_else(|error| {
                let why = format!("the webhook's template failed at {error}");
                tracing::error!(error = why, "cannot render the template; sending the message as plain JSON");
                json::body_with_error(message, why)
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::samples::{begun, lossy};
    use crate::test_support;

    fn rendered(template: &str, message: &Message<'_>) -> String {
        Form::Template(Template::parse(template).expect("a template")).body(message)
    }

    #[test]
    fn text_format_has_one_member_and_fits_into_google_chat() {
        let events: Vec<_> = (0..100).map(lossy).collect();
        let body: Value =
            serde_json::from_str(&Form::Text.body(&test_support::message(&events.iter().collect::<Vec<_>>())))
                .expect("JSON");
        let members: Vec<_> = body.as_object().expect("an object").keys().collect();
        assert_eq!(members, ["text"]);
        let text = body["text"].as_str().expect("a text");
        assert!(text.starts_with("100 nodes of prod") && text.chars().count() <= 4_096, "{text}");
    }

    #[test]
    fn nths_default_template_renders_like_nth() {
        let nths = r#"{"text":"[NTH][Instance Interruption] EventID: {{ .EventID }} - Kind: {{ .Kind }} - Instance: {{ .InstanceID }} - Node: {{ .NodeName }} - Description: {{ .Description }} - Start Time: {{ .StartTime }}"}"#;
        insta::assert_snapshot!(rendered(nths, &test_support::message(&[&begun(1)])));
    }

    #[test]
    fn unknown_end_time_is_zero() {
        let template = r#"{{ if not .EndTime.IsZero }}ends at {{ .EndTime.Format "15:04" }}{{ else }}waits{{ end }}"#;
        let (spot, mut hook) = (begun(1), begun(2));
        hook.receipt.notice.deadline = None;
        assert_eq!(rendered(template, &test_support::message(&[&spot])), "ends at 03:14");
        assert_eq!(rendered(template, &test_support::message(&[&hook])), "waits");
        assert_eq!(rendered(template, &test_support::message(&[&hook, &spot])), "ends at 03:14");
    }

    #[test]
    fn failing_template_sends_plain_json_with_the_error() {
        let body = rendered("{{ .NoSuchField }}", &test_support::message(&[&begun(1)]));
        let body: Value = serde_json::from_str(&body).expect("JSON");
        let why = body["template_error"].as_str().expect("a reason");
        assert!(
            why.starts_with("the webhook's template failed at line 1, column ") && why.contains("NoSuchField"),
            "{why}"
        );
        let text = body["text"].as_str().expect("a text");
        assert!(text.starts_with("Draining ip-10-0-0-1") && text.ends_with(&format!("({why})")), "{text}");
    }
}
