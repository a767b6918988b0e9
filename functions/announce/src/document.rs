//! Parses the webhook's document: a JSON object with the URL, the headers and the format.

use std::fmt;

use gotemplate_json::Template;
use reqwest::Url;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Map, Value};

use crate::form::Form;
use crate::words::{clip, distinct};

/// Description of a valid document, for error messages.
const ACCEPTED: &str = r#"a JSON object with "url" (https://…) and optionally "headers" (an object of strings), "proxy" (http://… or https://…), "format" ("slack", "text" or "json") and "template" (a Go template, which overrides the format)"#;

/// Configuration of a webhook. The URL, the headers and the proxy may contain secrets.
#[derive(Debug)]
pub(crate) struct WebhookDocument {
    pub(crate) url: SecretString,
    pub(crate) headers: HeaderMap,
    pub(crate) proxy: Option<SecretString>,
    pub(crate) form: Form,
}

/// Descriptions of problems in a document. The document's values are omitted, because they may be secrets.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) struct DocumentError(Vec<String>);

impl fmt::Display for DocumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; expected {ACCEPTED}", self.0.join("; "))
    }
}

impl WebhookDocument {
    /// Parses a document and reports all problems at once.
    pub(crate) fn parse(text: &str) -> Result<Self, DocumentError> {
        let Ok(Value::Object(members)) = serde_json::from_str(text) else {
            return Err(DocumentError(vec!["is not a JSON object".to_owned()]));
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

/// Quotes the first 64 characters of a name for an error message.
fn quoted(name: &str) -> String {
    const MOST: usize = 64;
    format!("{:?}", clip(name, MOST))
}

fn text<'a>(member: &str, value: &'a Value) -> Result<&'a str, String> {
    value.as_str().ok_or_else(|| format!("has a {member:?} that is not a string"))
}

fn has_scheme(value: &str, schemes: &[&str]) -> bool {
    Url::parse(value).is_ok_and(|url| schemes.contains(&url.scheme()) && url.has_host())
}

/// Parses the URL. Refuses plain HTTP, because the URL is a secret.
fn webhook_url(value: &Value) -> Result<SecretString, String> {
    let url = text("url", value)?;
    has_scheme(url, &["https"]).then(|| url.into()).ok_or_else(|| "has a \"url\" that is not an https URL".to_owned())
}

fn proxy_url(value: &Value) -> Result<SecretString, String> {
    let url = text("proxy", value)?;
    let fits = has_scheme(url, &["http", "https"]);
    fits.then(|| url.into()).ok_or_else(|| "has a \"proxy\" that is not an http or https URL".to_owned())
}

fn form(value: &Value) -> Result<Form, String> {
    match text("format", value)? {
        "slack" => Ok(Form::Slack),
        "json" => Ok(Form::Json),
        "text" => Ok(Form::Text),
        _ => Err("has a \"format\" other than \"slack\", \"text\" or \"json\"".to_owned()),
    }
}

/// Returns the default format: `slack` for Slack's hosts, else `text`.
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

fn json_headers() -> HeaderMap {
    HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))])
}

fn headers_of(value: &Value) -> Result<HeaderMap, String> {
    let object: &Map<_, _> = value.as_object().ok_or("has \"headers\" that are not an object of strings")?;
    let headers = object.iter().map(|(name, text)| {
        let text = text.as_str().ok_or_else(|| format!("has a header that is not a string: {}", quoted(name)))?;
        let header =
            HeaderName::try_from(name).map_err(|_| format!("has a header with an invalid name: {}", quoted(name)))?;
        let mut text =
            HeaderValue::try_from(text).map_err(|_| format!("has a header with an invalid value: {}", quoted(name)))?;
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
        let error = WebhookDocument::parse(&document.to_string()).expect_err("no document").to_string();
        let (problems, accepted) = error.split_once("; expected ").expect("a description");
        assert_eq!(accepted, ACCEPTED);
        problems.to_owned()
    }

    #[test]
    fn document_with_only_a_url_is_accepted() {
        let document = WebhookDocument::parse(r#"{"url": "https://hooks.example/T1"}"#).expect("a document");
        assert_eq!(document.url.expose_secret(), "https://hooks.example/T1");
        assert_eq!(document.headers, HeaderMap::from_iter([(CONTENT_TYPE, "application/json".parse().expect("text"))]));
        assert!(document.proxy.is_none() && matches!(document.form, Form::Text), "{document:?}");
    }

    #[test]
    fn template_then_format_then_host_decide_the_form() {
        let parse = |document: Value| WebhookDocument::parse(&document.to_string()).expect("a document").form;
        let form = |url: &str| parse(json!({"url": url}));
        for url in ["https://hooks.slack.com/services/T1", "https://HOOKS.slack-gov.com/triggers/T1"] {
            assert!(matches!(form(url), Form::Slack), "{url}");
        }
        let google = "https://chat.googleapis.com/v1/spaces/AAAA/messages?key=KEY&token=TOKEN%3D";
        for url in [google, "https://hooks.slack.com.example/T1"] {
            assert!(matches!(form(url), Form::Text), "{url}");
        }
        let slack = json!({"url": "https://hooks.example", "format": "slack"});
        assert!(matches!(parse(slack), Form::Slack));
        assert!(matches!(parse(json!({"url": "https://hooks.slack.com", "format": "text"})), Form::Text));
        let template = json!({"url": "https://hooks.example", "format": "json", "template": "{{ .NodeName }}"});
        assert!(matches!(parse(template), Form::Template(_)));
    }

    #[test]
    fn debug_has_no_secrets() {
        let document = json!({
            "url": "https://hooks.example/T1/hush",
            "headers": {"Content-type": "application/json", "Authorization": "Bearer hush"},
            "proxy": "http://user:hush@proxy.example:3128",
            "format": "json",
        });
        let debug = format!("{:#?}", WebhookDocument::parse(&document.to_string()).expect("a document"));
        assert!(!debug.contains("hush"), "{debug}");
    }

    #[test]
    fn document_of_the_page_is_accepted_and_its_table_is_complete() {
        let page = include_str!("../../../docs/announcements.md");
        let section = page.split("## The document of the webhook\n").nth(1).expect("a section");
        let written = section.split("```json\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a document");
        let document = WebhookDocument::parse(written).expect("it is accepted");
        assert!(matches!(document.form, Form::Template(_)), "{document:?}");
        for member in ["url", "format", "template", "headers", "proxy"] {
            assert!(section.contains(&format!("\n| `{member}` | ")), "{member}");
        }
    }

    #[test]
    fn other_text_than_an_object_is_refused_and_not_repeated() {
        for text in ["", "https://hooks.example/hush", "[]", "\"hush\"", "{\"url\": hush}"] {
            let error = WebhookDocument::parse(text).expect_err("no document").to_string();
            assert!(error.starts_with("is not a JSON object; expected ") && !error.contains("hush"), "{error}");
        }
        assert_eq!(problems(&json!({"format": "json"})), "has no \"url\"");
    }

    #[test]
    fn url_requires_tls_and_proxy_does_not() {
        for url in ["http://hooks.example/hush", "hooks.example/hush", "ftp://hooks.example/hush", "https://"] {
            assert_eq!(problems(&json!({"url": url})), "has a \"url\" that is not an https URL", "{url}");
        }
        let of_proxy = |proxy: &str| json!({"url": "https://hooks.example", "proxy": proxy});
        assert!(WebhookDocument::parse(&of_proxy("http://proxy.example:3128").to_string()).is_ok());
        assert_eq!(problems(&of_proxy("hush@proxy")), "has a \"proxy\" that is not an http or https URL");
    }

    #[test]
    fn all_problems_are_reported_at_once_without_values() {
        let problems = problems(&json!({
            "url": ["https://hooks.example/hush"], "headers": {"Authorization": ["hush"]}, "proxy": 7,
            "format": "hush", "template": "{\n  \"text\": \"{{ nodename }}\"\n}", "webhookurl": "https://hush",
        }));
        assert!(!problems.contains("hush"), "{problems}");
        insta::assert_snapshot!(problems.replace("; ", ";\n"));
    }

    #[test]
    fn long_names_are_cut_in_errors() {
        let mut document = json!({"url": "https://hooks.example"});
        for n in 0..1_000 {
            document[format!("{n:04}{}", "x".repeat(4_000))] = json!("hush");
        }
        let unknown = problems(&document);
        assert!(unknown.starts_with("has unknown members: \"0000xxx") && unknown.ends_with(", and 990 more"));
        let of = |headers: Value| problems(&json!({"url": "https://hooks.example", "headers": headers}));
        let header = of(json!({"a b".repeat(1_000): "hush"}));
        assert!(unknown.len() < 1_000 && header.len() < 1_000, "{unknown} {header}");
        assert_eq!(of(json!("Authorization: hush")), "has \"headers\" that are not an object of strings");
        assert_eq!(of(json!({"a b": "hush"})), "has a header with an invalid name: \"a b\"");
        assert_eq!(of(json!({"a": "hush\nx"})), "has a header with an invalid value: \"a\"");
    }
}
