//! For tests: an HTTP server, webhooks for it, and sample messages.

use std::sync::{Arc, Mutex};

use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_smithy_runtime_api::client::http::http_client_fn;
use aws_types::SdkConfig;
use aws_types::region::Region;
use axum::Router;
use axum::extract::Request;
use axum::response::Response;
use gotemplate_json::Template;
use http_body_util::BodyExt as _;
use reqwest::header::HeaderMap;
use secrecy::SecretString;
use serde_json::{Value, json};
use spillway_aws_call::Caller;
use tokio::net::TcpListener;

use crate::document::WebhookDocument;
use crate::event::Event;
use crate::form::Form;
use crate::group::{Message, messages};
use crate::links::PAGES;
use crate::samples::LOG_GROUP;
use crate::stored::Stored;
use crate::webhook::Webhook;

/// Recorded requests: method and URI, headers, body.
pub(crate) type Requests = Arc<Mutex<Vec<(String, HeaderMap, String)>>>;

/// Starts an HTTP server. Returns the server's address and the requests that the server receives.
pub(crate) async fn server(answer: impl Fn() -> Response + Clone + Send + Sync + 'static) -> (String, Requests) {
    let requests = Requests::default();
    let received = requests.clone();
    let serve = move |request: Request| {
        let (answer, received) = (answer.clone(), received.clone());
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await.expect("a body").to_bytes();
            let body = String::from_utf8(body.to_vec()).expect("text");
            received.lock().expect("unpoisoned").push((format!("{} {}", head.method, head.uri), head.headers, body));
            answer()
        }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(serve)).await });
    (format!("http://{address}"), requests)
}

/// Webhook document, in which the URL may be plain HTTP.
pub(crate) fn document(url: &str, headers: &str, proxy: Option<&str>) -> WebhookDocument {
    let headers: Value = serde_json::from_str(headers).expect("JSON");
    let written = json!({"url": "https://hooks.slack.com", "headers": headers});
    let read = WebhookDocument::parse(&written.to_string()).expect("a document");
    WebhookDocument { url: url.into(), proxy: proxy.map(SecretString::from), ..read }
}

pub(crate) fn webhook(url: &str, headers: &str, proxy: Option<&str>) -> Webhook {
    Webhook::new(Stored::holding(document(url, headers, proxy)))
}

pub(crate) fn templated(url: &str, template: Template) -> Webhook {
    Webhook::new(Stored::holding(WebhookDocument { form: Form::Template(template), ..document(url, "{}", None) }))
}

/// AWS client that panics at a call.
pub(crate) fn no_aws() -> Caller {
    let credentials = SharedCredentialsProvider::new(Credentials::new("id", "secret", None, None, "test"));
    let http = http_client_fn(|_, _| unreachable!("AWS is called"));
    let aws = SdkConfig::builder().region(Region::new("eu-west-1")).credentials_provider(credentials).http_client(http);
    Caller::new(&aws.build()).expect("a configuration")
}

/// Returns the only message about the events.
pub(crate) fn message<'a>(events: &[&'a Event]) -> Message<'a> {
    let mut all = messages(events, LOG_GROUP);
    assert_eq!(all.len(), 1, "one message");
    all.remove(0)
}

/// Replaces the addresses of links by short texts.
pub(crate) fn without_addresses(text: &str) -> String {
    let is_query = |word: &str| word.contains("#logsV2:");
    let words = text.replace(PAGES, "PAGES");
    let short = |word: &str| match (is_query(word), word.split_once("https://"), word.split_once('|')) {
        (true, Some((before, _)), Some((_, after))) => format!("{before}QUERY|{after}"),
        (true, Some((before, _)), None) => format!("{before}QUERY"),
        _ => word.to_owned(),
    };
    let line = |line: &str| line.split(' ').map(short).collect::<Vec<_>>().join(" ");
    words.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// Event `detail` from a snapshot of the drain function's tests.
pub(crate) fn written(test: &str) -> Value {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates/drainer/src/publish/snapshots");
    let file = format!("{folder}/spillway_drainer__publish__tests__{test}.snap");
    let snapshot = std::fs::read_to_string(file).expect("a snapshot");
    serde_json::from_str(snapshot.split_once("\n---\n").expect("a head").1).expect("JSON")
}
