//! An API server that follows a script, behind a `kube::Client`; and the objects that it answers with.

use std::convert::Infallible;

use futures_util::{StreamExt as _, stream};
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Bytes, Frame};
use kube::client::Body;
use serde_json::{Value, json};

use super::instance;
use super::script::{Answer, Script};

/// The node's name where EC2 tells of no DNS name: the instance's id.
pub(crate) const NODE: &str = "i-0123456789abcdef0";
/// Its path.
pub(crate) const NODE_PATH: &str = "/api/v1/nodes/i-0123456789abcdef0";

/// A client whose requests are answered by the script.
pub(crate) fn client(script: Script) -> kube::Client {
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
    Ok(Response::builder().status(code).body(body).unwrap())
}

/// A refusal, as the API server words it, about an object of that kind.
pub(crate) fn status(code: u16, reason: &str, kind: &str) -> String {
    let details = json!({"name": "x", "kind": kind});
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": "why",
        "reason": reason, "details": details, "code": code});
    status.to_string()
}

/// The instance's node: Ready, in use, untouched.
pub(crate) fn node() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": NODE, "resourceVersion": "7", "labels": {}, "annotations": {}},
        "spec": {"providerID": instance().provider_id()},
        "status": {"conditions": [{"type": "Ready", "status": "True"}], "nodeInfo": {"bootID": "b-2"}},
    })
}

/// That node with a claim on it, which a notice of that kind, event and request made.
pub(crate) fn claimed(notice: &str, event: &str, request: &str) -> Value {
    let mark = json!({"event": event, "request": request, "notice": notice, "cordoned": true});
    let mut node = node();
    node["metadata"]["annotations"]["spillway/claim"] = json!(mark.to_string());
    node["metadata"]["managedFields"] = json!([
        {"manager": "spillway", "operation": "Update", "fieldsType": "FieldsV1", "apiVersion": "v1",
         "fieldsV1": {"f:spec": {"f:unschedulable": {}}}}]);
    node["spec"]["unschedulable"] = json!(true);
    node
}

/// A pod on that node, of a `ReplicaSet`.
pub(crate) fn pod(name: &str) -> Value {
    let owner = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "rs", "controller": true});
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "uid": format!("uid-{name}"), "resourceVersion": "8",
            "ownerReferences": [owner]},
        "spec": {"nodeName": NODE, "terminationGracePeriodSeconds": 30, "containers": []},
        "status": {"phase": "Running"},
    })
}

/// A list of that kind.
pub(crate) fn list(kind: &str, items: &[Value]) -> Value {
    json!({"apiVersion": "v1", "kind": format!("{kind}List"), "metadata": {"resourceVersion": "7"}, "items": items})
}

/// An event of a watch.
pub(crate) fn watched(what: &str, object: &Value) -> Value {
    json!({"type": what, "object": object})
}
