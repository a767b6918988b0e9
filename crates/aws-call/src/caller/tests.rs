//! Sent requests, and the result of each answer.

use std::sync::Mutex;
use std::time::UNIX_EPOCH;

use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture, SharedHttpConnector, http_client_fn};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::http::StatusCode;
use aws_types::region::Region;
use aws_types::service_config::LoadServiceConfig;
use spillway_retry::Transient as _;
use tokio::time::Instant;

use super::*;
use crate::error::CallErrorKind;

/// Answer of an endpoint to every request.
#[derive(Debug, Clone, Copy)]
enum Endpoint {
    Answers(u16, &'static str),
    Resets,
    Hangs,
}

/// Keeps each request.
#[derive(Debug, Clone)]
struct Connector {
    endpoint: Endpoint,
    requests: Arc<Mutex<Vec<HttpRequest>>>,
}

impl HttpConnector for Connector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        self.requests.lock().expect("unpoisoned").push(request);
        match self.endpoint {
            Endpoint::Answers(status, body) => {
                let status = StatusCode::try_from(status).expect("a status");
                HttpConnectorFuture::ready(Ok(HttpResponse::new(status, SdkBody::from(body))))
            }
            Endpoint::Resets => HttpConnectorFuture::ready(Err(ConnectorError::io("the connection broke".into()))),
            Endpoint::Hangs => HttpConnectorFuture::new(std::future::pending()),
        }
    }
}

/// Configuration with an endpoint for Lambda.
#[derive(Debug)]
struct NamedLambda;

impl LoadServiceConfig for NamedLambda {
    fn load_config(&self, key: ServiceConfigKey<'_>) -> Option<String> {
        (key.service_id() == "Lambda").then(|| "https://lambda.example/".to_owned())
    }
}

fn credentials() -> Credentials {
    Credentials::new("AKIDEXAMPLE", "secret-key", Some("session-token".to_owned()), None, "test")
}

fn caller(endpoint: Endpoint) -> (Caller, Arc<Mutex<Vec<HttpRequest>>>) {
    let requests = Arc::default();
    let connector = SharedHttpConnector::new(Connector { endpoint, requests: Arc::clone(&requests) });
    let aws = SdkConfig::builder()
        .region(Region::new("eu-west-1"))
        .credentials_provider(SharedCredentialsProvider::new(credentials()))
        .http_client(http_client_fn(move |_, _| connector.clone()))
        .service_config(NamedLambda)
        .build();
    (Caller::new(&aws).expect("a configuration"), requests)
}

fn invoke() -> Call<'static> {
    Call {
        service: Service::Lambda,
        action: "lambda:InvokeFunction",
        region: Some("eu-central-1"),
        method: "POST",
        path: "/2015-03-31/functions/drain/invocations",
        headers: vec![("content-type", "application/json")],
        body: "{}",
    }
}

/// Result of a call to an endpoint.
async fn result_of(endpoint: Endpoint) -> Result<Value, CallError> {
    caller(endpoint).0.json(&invoke()).await
}

#[tokio::test]
async fn call_is_sent_to_its_endpoint_with_a_signature() {
    let (caller, requests) = caller(Endpoint::Answers(200, ""));
    caller.call(&invoke()).await.expect("an answer");
    caller.call(&Call { service: Service::Sns, region: None, path: "/", ..invoke() }).await.expect("an answer");

    let requests = requests.lock().expect("unpoisoned");
    let [invoked, publish] = requests.as_slice() else { panic!("{requests:?}") };
    assert_eq!(
        (invoked.method(), invoked.uri()),
        ("POST", "https://lambda.example/2015-03-31/functions/drain/invocations")
    );
    assert_eq!(invoked.body().bytes(), Some(b"{}".as_slice()));
    let header = |name: &str| invoked.headers().get(name).unwrap_or_default();
    assert_eq!(header("content-type"), "application/json");
    let authorization = header("authorization");
    assert!(authorization.contains("/eu-central-1/lambda/aws4_request"), "{authorization}");
    assert!(authorization.contains("content-type;host;"), "{authorization}");
    assert_eq!(publish.uri(), "https://sns.eu-west-1.amazonaws.com/");
}

/// Computed once with botocore's `SigV4Auth` for the same instant and credentials.
#[test]
fn signature_equals_that_of_botocore() {
    let now = UNIX_EPOCH + Duration::from_secs(1_795_230_720);
    let request = signed(&invoke(), "https://lambda.eu-central-1.amazonaws.com", "eu-central-1", credentials(), now);
    let request = request.expect("a request");
    let authorization = request.headers().get("authorization").unwrap_or_default();
    assert_eq!(
        authorization.rsplit('=').next(),
        Some("8d2c5e5c09ddd39e4638fb3508560b8c6156a5dabffd54ac7457abf9bf58d41b")
    );
}

#[tokio::test]
async fn refused_call_has_code_and_kind() {
    let kind = |answer: Result<Value, CallError>| answer.expect_err("refused").kind;
    let denied =
        result_of(Endpoint::Answers(403, "<Error><Code>AccessDenied</Code><Message>no</Message></Error>")).await;
    assert_eq!(denied.as_ref().map_err(CallError::answer), Err("AccessDenied: no"));
    assert_eq!(kind(denied), CallErrorKind::Denied);
    assert_eq!(kind(result_of(Endpoint::Answers(404, "<Code>NotFound</Code>")).await), CallErrorKind::Refused);
    assert_eq!(kind(result_of(Endpoint::Answers(503, "<Code>SlowDown</Code>")).await), CallErrorKind::Throttled);
    assert_eq!(kind(result_of(Endpoint::Answers(500, "<html>")).await), CallErrorKind::Broken);
}

#[tokio::test(start_paused = true)]
async fn unanswered_call_is_transient() {
    let begin = Instant::now();
    for (endpoint, after) in [(Endpoint::Resets, 0), (Endpoint::Answers(200, "<html>"), 0), (Endpoint::Hangs, 5)] {
        let error = result_of(endpoint).await.expect_err("no answer");
        assert!(
            error.to_string().starts_with("lambda:InvokeFunction got no answer") && error.is_transient(),
            "{error}"
        );
        assert_eq!(begin.elapsed().as_secs(), after);
    }
}

#[test]
fn debug_line_has_no_credentials() {
    let debug = format!("{:?}", caller(Endpoint::Hangs).0);
    assert!(!debug.contains("secret-key") && !debug.contains("session-token"), "{debug}");
}
