//! Context whose AWS and API server follow scripts.

use std::convert::Infallible;
use std::ops::Deref;

use futures_util::{StreamExt as _, stream};
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Bytes, Frame};
use kube::client::Body;
use serde_json::json;
use spillway_core::test_support::settings;

use super::SdkAttempts;
use super::aws::{AwsDouble, eks_cluster};
use super::script::{Answer, Expected, Script, call};
use crate::context::Context;
use crate::context::log::Log;

/// Context with scripts. Its drop fails the test after a missing or unexpected call.
#[derive(Debug)]
pub struct TestContext {
    context: Context,
    scripts: [Script; 2],
}

impl TestContext {
    /// Makes a context with settings and the expected calls to the API server and to AWS. The begin of a drain and the receipt may be
    /// published at any time.
    pub fn new(
        variables: &[(&str, &str)],
        api: impl IntoIterator<Item = Expected>,
        aws: impl IntoIterator<Item = Expected>,
    ) -> Self {
        let published = ["Spillway Drain Begun", "Spillway Receipt"].map(|what| put_event().with(what).perhaps());
        let (api, aws) = (Script::new("API server", api), Script::new("AWS", aws.into_iter().chain(published)));
        let settings = settings(&[variables, &[("SPILLWAY_HOOKS", "spillway,my-lifecycle-hook")]].concat());
        let cluster = {
            let api = api.clone();
            move |_: &str| client(api.clone())
        };
        let context = super::context(settings, &scripted(aws.clone()), SdkAttempts::Once, cluster, Log::stdout());
        Self { context, scripts: [api, aws] }
    }
}

impl Deref for TestContext {
    type Target = Context;

    fn deref(&self) -> &Context {
        &self.context
    }
}

impl Drop for TestContext {
    fn drop(&mut self) {
        let problems: Vec<_> = self.scripts.iter().flat_map(Script::problems).collect();
        if std::thread::panicking() {
            eprintln!("{}", problems.join("\n"));
        } else {
            assert!(problems.is_empty(), "{}", problems.join("\n"));
        }
    }
}

/// Expects an event on the event bus.
pub fn put_event() -> Expected {
    call("PutEvents").says(200, json!({"FailedEntryCount": 0, "Entries": [{"EventId": "1"}]}))
}

/// Refusal of the API server about an object of this kind.
pub fn status(code: u16, reason: &str, kind: &str) -> String {
    let details = json!({"name": "x", "kind": kind});
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": "why",
        "reason": reason, "details": details, "code": code});
    status.to_string()
}

/// Double of AWS with a script, and with EKS' description of each cluster.
fn scripted(script: Script) -> AwsDouble {
    AwsDouble::new(move |call| {
        let refusal = || Answer::Says(400, json!({"__type": "Unexpected", "message": "by the test"}).to_string());
        let answer = if call.name.starts_with("GET /clusters/") {
            Answer::Says(200, eks_cluster("https://127.0.0.1"))
        } else {
            script.answer(&call.name, &call.body).unwrap_or_else(refusal)
        };
        async {
            match answer {
                Answer::Says(status, body) => Some((status, body)),
                Answer::Streams(lines) => Some((200, lines.concat())),
                Answer::Lost => None,
                Answer::Hangs => std::future::pending().await,
            }
        }
    })
}

/// Client with a script.
fn client(script: Script) -> kube::Client {
    let service = tower::service_fn(move |request: Request<Body>| respond(script.clone(), request));
    kube::Client::new(service, "default")
}

async fn respond(
    script: Script,
    request: Request<Body>,
) -> Result<Response<UnsyncBoxBody<Bytes, Infallible>>, std::io::Error> {
    let call = format!("{} {}", request.method(), request.uri().path());
    let query = request.uri().query().unwrap_or_default().to_owned();
    let body = request.into_body().collect_bytes().await.map_err(std::io::Error::other)?;
    let text = format!("{query} {}", String::from_utf8_lossy(&body));
    let refusal = || Answer::Says(400, status(400, "Unexpected", "nodes"));
    let (code, body) = match script.answer(&call, &text).unwrap_or_else(refusal) {
        Answer::Says(code, body) => (code, Full::new(Bytes::from(body)).boxed_unsync()),
        Answer::Streams(lines) => {
            let frames = stream::iter(lines).map(|line| Ok(Frame::data(Bytes::from(line))));
            (200, StreamBody::new(frames.chain(stream::pending())).boxed_unsync())
        }
        Answer::Lost => return Err(std::io::Error::other("the connection broke")),
        Answer::Hangs => std::future::pending().await,
    };
    Response::builder().status(code).body(body).map_err(std::io::Error::other)
}
