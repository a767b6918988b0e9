//! Renders messages about sample drains without sending them.

use std::fmt::Write as _;

use gotemplate_json::Template;
use serde_json::Value;

use crate::document::WebhookDocument;
use crate::event::Event;
use crate::form::Form;
use crate::group::{Message, messages};
use crate::samples::{LOG_GROUP, begun, blocked, ended, lossy, storm, unblocked};
use crate::{slack, template, text};

/// Format of the previewed messages. `None` means e-mail.
#[derive(Debug)]
pub struct Preview(Option<Form>);

impl Preview {
    pub fn named(name: &str) -> Result<Self, String> {
        match name {
            "slack" => Ok(Self(Some(Form::Slack))),
            "json" => Ok(Self(Some(Form::Json))),
            "text" => Ok(Self(None)),
            _ => Err(format!("unknown format {name:?}: expected slack, json or text")),
        }
    }

    pub fn of_template(text: &str) -> Result<Self, String> {
        let template = Template::parse(text).map_err(|error| format!("the template does not parse, at {error}"))?;
        Ok(Self(Some(Form::Template(template))))
    }

    pub fn of_document(text: &str) -> Result<Self, String> {
        let document = WebhookDocument::parse(text).map_err(|error| format!("the document {error}"))?;
        Ok(Self(Some(document.form)))
    }

    /// Renders the sample messages, each under a title.
    pub fn render(&self) -> Result<String, String> {
        let (begun, drained, lossy, third) = (begun(1), ended(1, "drained"), lossy(2), ended(3, "drained"));
        let (blocked, unblocked) = (blocked(1), unblocked(1));
        let storm = storm();
        let storm: Vec<&Event> = storm.iter().collect();
        let samples: [(&str, &[&Event]); 7] = [
            ("A drain begins", &[&begun]),
            ("A budget has blocked a pod for a minute", &[&blocked]),
            ("The pod is no longer blocked", &[&unblocked]),
            ("The drain has ended", &[&drained]),
            ("A drain that lost pods", &[&lossy]),
            ("Three nodes at once", &[&drained, &lossy, &third]),
            ("A storm", &storm),
        ];
        let mut shown = String::new();
        for (title, events) in samples {
            for message in messages(events, LOG_GROUP) {
                let body = self.body(&message).map_err(|why| format!("{title}: {why}"))?;
                writeln!(shown, "--- {title}\n{}\n", body.trim_end()).expect("a text takes more text");
            }
        }
        Ok(shown)
    }

    fn body(&self, message: &Message<'_>) -> Result<String, String> {
        match &self.0 {
            Some(Form::Slack) => Ok(format!("{:#}", slack::message(message))),
            Some(form @ (Form::Json | Form::Text)) => Ok(form.body(message)),
            Some(Form::Template(written)) => {
                let failed = |error| format!("the template fails at {error}");
                let body = written.render(&template::fields(message)).map_err(failed)?;
                let is_json = serde_json::from_str::<Value>(&body).is_ok();
                Ok(if is_json { body } else { format!("{body}\n(not JSON: Slack and other chats refuse this body)") })
            }
            None => Ok(format!("Subject: {}\n\n{}", text::subject(message), text::body(message))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::message;

    #[test]
    fn every_format_renders_every_sample() {
        for name in ["slack", "json", "text"] {
            let shown = Preview::named(name).expect("a form").render().expect("messages");
            assert_eq!(shown.matches("\n--- ").count() + 1, 7, "{shown}");
            assert!(shown.contains("ip-10-0-0-2"), "{shown}");
        }
        assert!(Preview::named("html").is_err());
    }

    #[test]
    fn template_is_rendered_or_the_error_names_the_place() {
        let render = |text: &str| Preview::of_template(text).and_then(|preview| preview.render());
        let shown = render(r#"{"text": "{{ .Kind }} of {{ .NodeName }}"}"#).expect("messages");
        assert!(shown.contains(r#"{"text": "SPOT_ITN of ip-10-0-0-1.eu-west-1.compute.internal"}"#), "{shown}");
        assert!(render("{{ .Kind }}").expect("messages").contains("not JSON"));
        let fails = render("{{ .NoSuchField }}").expect_err("no message");
        assert!(fails.starts_with("A drain begins: the template fails at line 1"), "{fails}");
    }

    /// Text of a block without markup.
    fn shown(block: &Value) -> String {
        let texts = [&block["text"]["text"], &block["elements"][0]["text"]];
        let text = texts.iter().filter_map(|text| text.as_str()).collect::<String>();
        // A link shows its name.
        let text = text.split('<').map(|part| part.split_once('|').map_or(part, |(_, name)| name)).collect::<String>();
        text.replace(['>', '*'], "").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    }

    #[test]
    fn announcements_page_shows_a_message_unchanged() {
        let page = include_str!("../../../docs/announcements.md");
        let event = lossy(2);
        let message_of_slack = slack::message(&message(&[&event]));
        let blocks = message_of_slack["blocks"].as_array().expect("blocks");
        let slack = blocks.iter().map(shown).collect::<Vec<_>>().join("\n\n");
        assert!(page.contains(&format!("```text\n{slack}\n```")), "the page shows another message:\n{slack}");
    }
}
