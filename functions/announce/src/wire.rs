//! For tests: an HTTP server and webhooks for it.

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

use crate::document::Document;
use crate::form::Form;
use crate::stored::Stored;
use crate::webhook::Webhook;

/// Requests of a server: method with URI, headers and body.
pub(crate) type Requests = Arc<Mutex<Vec<(String, HeaderMap, String)>>>;

/// Starts a server. Returns its address and its requests.
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

/// Document of a webhook, also for an address without TLS.
pub(crate) fn document(url: &str, headers: &str, proxy: Option<&str>) -> Document {
    let headers: Value = serde_json::from_str(headers).expect("JSON");
    let written = json!({"url": "https://hooks.slack.com", "headers": headers});
    let read = Document::parse(&written.to_string()).expect("a document");
    Document { url: url.into(), proxy: proxy.map(SecretString::from), ..read }
}

pub(crate) fn webhook(url: &str, headers: &str, proxy: Option<&str>) -> Webhook {
    Webhook::new(Stored::holding(document(url, headers, proxy)))
}

pub(crate) fn templated(url: &str, template: Template) -> Webhook {
    Webhook::new(Stored::holding(Document { form: Form::Template(template), ..document(url, "{}", None) }))
}

/// AWS client that panics at a call.
pub(crate) fn no_aws() -> Caller {
    let credentials = SharedCredentialsProvider::new(Credentials::new("id", "secret", None, None, "test"));
    let http = http_client_fn(|_, _| unreachable!("AWS is called"));
    let aws = SdkConfig::builder().region(Region::new("eu-west-1")).credentials_provider(credentials).http_client(http);
    Caller::new(&aws.build()).expect("a configuration")
}
