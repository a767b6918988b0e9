//! The way of a request to the API server, behind a `kube::Client`.

use std::io;

use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use kube::Client;
use kube::client::Body;

use super::{ApiAnswer, ApiRequest, answers};
use crate::fact::Fact;
use crate::lambda::AttemptId;
use crate::network::pass;
use crate::plan::{Fault, Side};
use crate::simulation::Shared;

/// A stream of bytes, which may break.
pub(super) type Streamed = Response<UnsyncBoxBody<Bytes, io::Error>>;

/// A client for the attempt that is at work.
pub(crate) fn connect(simulation: &Shared) -> Client {
    let (simulation, by) = (simulation.clone(), AttemptId::current());
    let service = tower::service_fn(move |request| respond(simulation.clone(), by, request));
    Client::new(service, "default")
}

async fn respond(simulation: Shared, by: AttemptId, request: Request<Body>) -> io::Result<Streamed> {
    let (head, body) = request.into_parts();
    let body = body.collect_bytes().await.map_err(io::Error::other)?;
    let request = ApiRequest::read(by, &head.method, &head.uri, &body);
    if let Some(request) = request.leave() {
        simulation.lock().record(&Fact::LeaveRequested { by, request });
    }
    let line = request.to_string();
    match pass(&simulation, Side::Api, by, &line, |inside| inside.ask_cluster(&request)).await {
        Ok(ApiAnswer::Says(code, body)) => Ok(whole(code, body)),
        Ok(ApiAnswer::Watches(watch)) => Ok(watch.begin(simulation)),
        Err(Fault::Refused) => Ok(refusal(&simulation)),
        Err(Fault::Unauthorized) => Ok(whole(401, answers::status(401, "Unauthorized", "Unauthorized", None))),
        Err(_) => Err(io::Error::other("the connection broke")),
    }
}

fn whole(code: u16, body: String) -> Streamed {
    let body = Full::new(Bytes::from(body)).map_err(|never| match never {}).boxed_unsync();
    Response::builder().status(code).body(body).expect("it has a status")
}

/// What an API server says that has no time, or that has lost its etcd; or what stands before it.
fn refusal(simulation: &Shared) -> Streamed {
    match simulation.lock().network.obstacle(3) {
        0 => whole(429, "Too many requests, please try again later.\n".to_owned()),
        1 => whole(503, "<html>503 Service Unavailable</html>".to_owned()),
        _ => whole(500, answers::status(500, "InternalError", "etcdserver: leader changed", None)),
    }
}
