//! What is sent, and what comes of each answer.

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

/// What an endpoint does with every request.
#[derive(Debug, Clone, Copy)]
enum Endpoint {
    Answers(u16, &'static str),
    Resets,
    Hangs,
}

/// Keeps the URL and the headers of each request.
#[derive(Debug, Clone)]
struct Connector {
    endpoint: Endpoint,
    asked: Arc<Mutex<Vec<HttpRequest>>>,
}

impl HttpConnector for Connector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        self.asked.lock().expect("unpoisoned").push(request);
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

/// The endpoint of Lambda is named, as by the environment.
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
    let asked = Arc::default();
    let connector = SharedHttpConnector::new(Connector { endpoint, asked: Arc::clone(&asked) });
    let aws = SdkConfig::builder()
        .region(Region::new("eu-west-1"))
        .credentials_provider(SharedCredentialsProvider::new(credentials()))
        .http_client(http_client_fn(move |_, _| connector.clone()))
        .service_config(NamedLambda)
        .build();
    (Caller::new(&aws).expect("a configuration"), asked)
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

/// What comes of an endpoint's doing.
async fn comes_of(endpoint: Endpoint) -> Result<Value, CallError> {
    caller(endpoint).0.json(&invoke()).await
}

#[tokio::test]
async fn a_call_is_sent_to_its_endpoint_as_it_was_signed() {
    let (caller, asked) = caller(Endpoint::Answers(200, ""));
    caller.call(&invoke()).await.expect("an answer");
    caller.call(&Call { service: Service::Sns, region: None, path: "/", ..invoke() }).await.expect("an answer");

    let asked = asked.lock().expect("unpoisoned");
    let [invoked, publish] = asked.as_slice() else { panic!("{asked:?}") };
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
fn the_signature_is_the_one_that_botocore_makes() {
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
async fn what_aws_refuses_is_told_by_its_code() {
    let kind = |answer: Result<Value, CallError>| answer.expect_err("refused").kind;
    let denied =
        comes_of(Endpoint::Answers(403, "<Error><Code>AccessDenied</Code><Message>no</Message></Error>")).await;
    assert_eq!(denied.as_ref().map_err(CallError::answer), Err("AccessDenied: no"));
    assert_eq!(kind(denied), CallErrorKind::Denied);
    assert_eq!(kind(comes_of(Endpoint::Answers(404, "<Code>NotFound</Code>")).await), CallErrorKind::Refused);
    assert_eq!(kind(comes_of(Endpoint::Answers(503, "<Code>SlowDown</Code>")).await), CallErrorKind::Throttled);
    assert_eq!(kind(comes_of(Endpoint::Answers(500, "<html>")).await), CallErrorKind::Broken);
}

#[tokio::test(start_paused = true)]
async fn without_an_answer_the_call_is_given_up_and_may_be_made_again() {
    let begin = Instant::now();
    for (endpoint, after) in [(Endpoint::Resets, 0), (Endpoint::Answers(200, "<html>"), 0), (Endpoint::Hangs, 5)] {
        let error = comes_of(endpoint).await.expect_err("no answer");
        assert!(
            error.to_string().starts_with("lambda:InvokeFunction got no answer") && error.is_transient(),
            "{error}"
        );
        assert_eq!(begin.elapsed().as_secs(), after);
    }
}

#[test]
fn nobody_reads_the_credentials_in_a_debug_line() {
    let debug = format!("{:?}", caller(Endpoint::Hangs).0);
    assert!(!debug.contains("secret-key") && !debug.contains("session-token"), "{debug}");
}
