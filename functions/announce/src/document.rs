//! The document of the webhook: where messages are posted, how, and in which form. One JSON text, kept in AWS. Pure.

use std::fmt;

use gotemplate_json::Template;
use reqwest::Url;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Map, Value};

use crate::form::Form;
use crate::words::{clip, distinct};

/// What is accepted, for people.
const ACCEPTED: &str = r#"a JSON object with "url" (https://…) and, if wanted, "headers" (an object of texts), "proxy" (http://… or https://…), "format" ("slack", "text" or "json") and "template" (a Go template, which wins over the format)"#;

/// All that is known of the webhook. The URL, the headers and the proxy may be secrets.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) url: SecretString,
    pub(crate) headers: HeaderMap,
    pub(crate) proxy: Option<SecretString>,
    pub(crate) form: Form,
}

/// Everything that is wrong with a document. No value of it is repeated: it may be a secret.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) struct DocumentError(Vec<String>);

impl fmt::Display for DocumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; it takes {ACCEPTED}", self.0.join("; "))
    }
}

impl Document {
    /// Reads a document whole: every problem is reported at once.
    pub(crate) fn parse(text: &str) -> Result<Self, DocumentError> {
        let Ok(Value::Object(members)) = serde_json::from_str(text) else {
            return Err(DocumentError(vec!["is no JSON object".to_owned()]));
        };
        let mut problems = Vec::new();
        let mut unknown = Vec::new();
        let (mut url, mut headers, mut proxy, mut format, mut template) = (None, None, None, None, None);
        for (name, value) in &members {
            let read = match name.as_str() {
                "url" => webhook_url(value).map(|read| url = Some(read)),
                "headers" => headers_of(value).map(|read| headers = Some(read)),
                "proxy" => proxy_url(value).map(|read| proxy = Some(read)),
                "format" => form(value).map(|read| format = Some(read)),
                "template" => template_of(value).map(|read| template = Some(read)),
                _ => {
                    unknown.push(quoted(name));
                    Ok(())
                }
            };
            problems.extend(read.err());
        }
        if !unknown.is_empty() {
            problems.push(format!("has unknown members: {}", distinct(unknown.iter().map(String::as_str))));
        }
        if !members.contains_key("url") {
            problems.push("has no \"url\"".to_owned());
        }
        let default = url.as_ref().map_or(Form::Slack, default_form);
        match url {
            Some(url) if problems.is_empty() => Ok(Self {
                url,
                headers: headers.unwrap_or_else(json_headers),
                proxy,
                form: template.or(format).unwrap_or(default),
            }),
            _ => Err(DocumentError(problems)),
        }
    }
}

/// A name in an error. The document may have anything for one, and of any length.
fn quoted(name: &str) -> String {
    const MOST: usize = 64;
    format!("{:?}", clip(name, MOST))
}

fn text<'a>(member: &str, value: &'a Value) -> Result<&'a str, String> {
    value.as_str().ok_or_else(|| format!("has a {member:?} that is no text"))
}

fn has_scheme(value: &str, schemes: &[&str]) -> bool {
    Url::parse(value).is_ok_and(|url| schemes.contains(&url.scheme()) && url.has_host())
}

/// Not plain HTTP: whoever reads the URL on the way can write to the channel.
fn webhook_url(value: &Value) -> Result<SecretString, String> {
    let url = text("url", value)?;
    has_scheme(url, &["https"]).then(|| url.into()).ok_or_else(|| "has a \"url\" that is no https URL".to_owned())
}

fn proxy_url(value: &Value) -> Result<SecretString, String> {
    let url = text("proxy", value)?;
    let fits = has_scheme(url, &["http", "https"]);
    fits.then(|| url.into()).ok_or_else(|| "has a \"proxy\" that is no http or https URL".to_owned())
}

fn form(value: &Value) -> Result<Form, String> {
    match text("format", value)? {
        "slack" => Ok(Form::Slack),
        "json" => Ok(Form::Json),
        "text" => Ok(Form::Text),
        _ => Err("has another \"format\" than \"slack\", \"text\" or \"json\"".to_owned()),
    }
}

/// The form without a template and a format. Other chats than Slack refuse `blocks`.
fn default_form(url: &SecretString) -> Form {
    let url = Url::parse(url.expose_secret()).ok();
    match url.as_ref().and_then(Url::host_str) {
        Some("hooks.slack.com" | "hooks.slack-gov.com") => Form::Slack,
        _ => Form::Text,
    }
}

fn template_of(value: &Value) -> Result<Form, String> {
    let template = Template::parse(text("template", value)?);
    template.map(Form::Template).map_err(|error| format!("has a \"template\" that does not parse, at {error}"))
}

/// The headers when the document has none.
fn json_headers() -> HeaderMap {
    HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))])
}

fn headers_of(value: &Value) -> Result<HeaderMap, String> {
    let object: &Map<_, _> = value.as_object().ok_or("has \"headers\" that are no object of texts")?;
    let headers = object.iter().map(|(name, text)| {
        let text = text.as_str().ok_or_else(|| format!("has a header that is no text: {}", quoted(name)))?;
        let header = HeaderName::try_from(name)
            .map_err(|_| format!("has a header that cannot be named so: {}", quoted(name)))?;
        let mut text = HeaderValue::try_from(text)
            .map_err(|_| format!("has a header with a value that none can have: {}", quoted(name)))?;
        text.set_sensitive(true);
        Ok((header, text))
    });
    headers.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn problems(document: &Value) -> String {
        let error = Document::parse(&document.to_string()).expect_err("no document").to_string();
        let (problems, accepted) = error.split_once("; it takes ").expect("what is accepted");
        assert_eq!(accepted, ACCEPTED);
        problems.to_owned()
    }

    #[test]
    fn document_with_only_a_url_is_accepted() {
        let document = Document::parse(r#"{"url": "https://hooks.example/T1"}"#).expect("a document");
        assert_eq!(document.url.expose_secret(), "https://hooks.example/T1");
        assert_eq!(document.headers, HeaderMap::from_iter([(CONTENT_TYPE, "application/json".parse().expect("text"))]));
        assert!(document.proxy.is_none() && matches!(document.form, Form::Text), "{document:?}");
    }

    #[test]
    fn host_decides_between_slack_and_text() {
        let form = |url: &str| Document::parse(&json!({"url": url}).to_string()).expect("a document").form;
        for url in ["https://hooks.slack.com/services/T1", "https://HOOKS.slack-gov.com/triggers/T1"] {
            assert!(matches!(form(url), Form::Slack), "{url}");
        }
        let google = "https://chat.googleapis.com/v1/spaces/AAAA/messages?key=KEY&token=TOKEN%3D";
        for url in [google, "https://hooks.slack.com.example/T1"] {
            assert!(matches!(form(url), Form::Text), "{url}");
        }
    }

    #[test]
    fn every_member_can_be_given_and_none_that_is_secret_is_shown() {
        let document = json!({
            "url": "https://hooks.example/T1/hush",
            "headers": {"Content-type": "application/json", "Authorization": "Bearer hush"},
            "proxy": "http://user:hush@proxy.example:3128",
            "format": "json",
        });
        let debug = format!("{:#?}", Document::parse(&document.to_string()).expect("a document"));
        assert!(!debug.contains("hush"), "{debug}");
        insta::assert_snapshot!(debug);
    }

    #[test]
    fn format_wins_over_the_host() {
        let document = Document::parse(r#"{"url": "https://hooks.example", "format": "slack"}"#).expect("a document");
        assert!(matches!(document.form, Form::Slack), "{document:?}");
        let document = Document::parse(r#"{"url": "https://hooks.slack.com", "format": "text"}"#).expect("a document");
        assert!(matches!(document.form, Form::Text), "{document:?}");
    }

    #[test]
    fn a_template_wins_over_the_format() {
        let document = json!({"url": "https://hooks.example", "format": "json", "template": "{{ .NodeName }}"});
        let document = Document::parse(&document.to_string()).expect("a document");
        assert!(matches!(document.form, Form::Template(_)), "{document:?}");
    }

    #[test]
    fn the_document_on_the_page_is_accepted_and_its_table_has_every_member() {
        let page = include_str!("../../../docs/announcements.md");
        let section = page.split("## The document of the webhook\n").nth(1).expect("a section");
        let written = section.split("```json\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a document");
        let document = Document::parse(written).expect("it is accepted");
        assert!(matches!(document.form, Form::Template(_)), "{document:?}");
        for member in ["url", "format", "template", "headers", "proxy"] {
            assert!(section.contains(&format!("\n| `{member}` | ")), "{member}");
        }
    }

    #[test]
    fn what_is_no_json_object_is_refused_and_not_repeated() {
        for text in ["", "https://hooks.example/hush", "[]", "\"hush\"", "{\"url\": hush}"] {
            let error = Document::parse(text).expect_err("no document").to_string();
            assert!(error.starts_with("is no JSON object; it takes ") && !error.contains("hush"), "{error}");
        }
    }

    #[test]
    fn a_document_without_a_url_is_refused() {
        assert_eq!(problems(&json!({"format": "json"})), "has no \"url\"");
    }

    #[test]
    fn a_url_goes_over_tls_and_a_proxys_need_not() {
        for url in ["http://hooks.example/hush", "hooks.example/hush", "ftp://hooks.example/hush", "https://"] {
            assert_eq!(problems(&json!({"url": url})), "has a \"url\" that is no https URL", "{url}");
        }
        let of_proxy = |proxy: &str| json!({"url": "https://hooks.example", "proxy": proxy});
        assert!(Document::parse(&of_proxy("http://proxy.example:3128").to_string()).is_ok());
        assert_eq!(problems(&of_proxy("hush@proxy")), "has a \"proxy\" that is no http or https URL");
    }

    #[test]
    fn every_problem_is_reported_at_once_and_no_value_with_it() {
        let problems = problems(&json!({
            "url": ["https://hooks.example/hush"], "headers": {"Authorization": ["hush"]}, "proxy": 7,
            "format": "hush", "template": "{\n  \"text\": \"{{ nodename }}\"\n}", "webhookurl": "https://hush",
        }));
        assert!(!problems.contains("hush"), "{problems}");
        insta::assert_snapshot!(problems.replace("; ", ";\n"));
    }

    #[test]
    fn an_error_stays_short_whatever_names_the_document_has() {
        let mut document = json!({"url": "https://hooks.example"});
        for n in 0..1_000 {
            document[format!("{n:04}{}", "x".repeat(4_000))] = json!("hush");
        }
        let told = problems(&document);
        assert!(told.starts_with("has unknown members: \"0000xxx") && told.ends_with(", and 990 more"), "{told}");
        assert!(told.len() < 1_000, "{} bytes", told.len());
        let told = problems(&json!({"url": "https://hooks.example", "headers": {"a b".repeat(1_000): "hush"}}));
        assert!(told.len() < 1_000, "{} bytes", told.len());
    }

    #[test]
    fn headers_are_texts_with_names_that_headers_can_have() {
        let of = |headers: Value| problems(&json!({"url": "https://hooks.example", "headers": headers}));
        assert_eq!(of(json!("Authorization: hush")), "has \"headers\" that are no object of texts");
        assert_eq!(of(json!({"a b": "hush"})), "has a header that cannot be named so: \"a b\"");
        assert_eq!(of(json!({"a": "hush\nx"})), "has a header with a value that none can have: \"a\"");
    }
}
