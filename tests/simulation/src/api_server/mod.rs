//! An API server in memory, behind a `kube::Client`: it answers what the product asks as the real one does.
//!
//! * `cluster`: the objects, their versions, and what changed
//! * `pods`, `nodes`: the objects and what may be done with them
//! * `eviction`: leaving, by the eviction API or by deletion
//! * `patch`: JSON patches
//! * `watch`: lists and watches
//! * `request`: what is asked
//! * `answers`: in the real one's words
//! * `contract`: the real one answers that, too

mod answers;
pub(crate) mod cluster;
#[cfg(test)]
mod contract;
mod eviction;
pub(crate) mod nodes;
mod patch;
pub(crate) mod pods;
mod request;
mod watch;

use std::io;

use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use kube::client::Body;

use crate::draw::Side;
use crate::lambda::AttemptId;
use crate::network::{Passage, pass};
use crate::world::{Shared, World};
use answers::{Answer, not_allowed, not_found_path};
use cluster::Kind;
use request::{Asked, Verb};

type Answered = Result<Response<UnsyncBoxBody<Bytes, io::Error>>, io::Error>;

/// A client of the world's API server, for the attempt that is at work.
pub(crate) fn client(world: &Shared) -> kube::Client {
    let (world, attempt) = (world.clone(), AttemptId::current());
    let service = tower::service_fn(move |request: Request<Body>| respond(world.clone(), attempt, request));
    kube::Client::new(service, "default")
}

async fn respond(world: Shared, attempt: AttemptId, request: Request<Body>) -> Answered {
    let (parts, body) = request.into_parts();
    let body = body.collect_bytes().await.map_err(io::Error::other)?;
    let asked = Asked::read(&parts.method, &parts.uri, &body);
    let line = asked.to_string();
    if let Some(leave) = eviction::leave(&asked) {
        world.lock().witness_leave(attempt, &leave);
    }
    let passage = pass(&world, Side::Api, attempt, &line, || {
        let mut inside = world.lock();
        let answer = answer(&mut inside, attempt, &asked);
        inside.note(|| format!("  {attempt}   answered {answer}"));
        answer
    });
    match passage.await {
        Passage::Answered(Answer::Says(code, body)) => Ok(whole(code, body)),
        Passage::Answered(Answer::Watches(watch)) => Ok(watch.begin(world)),
        Passage::Refused => Ok(refusal(&world)),
        Passage::Unauthorized => Ok(whole(401, answers::status(401, "Unauthorized", "Unauthorized", None))),
        Passage::Lost => Err(io::Error::other("the connection broke")),
    }
}

fn whole(code: u16, body: String) -> Response<UnsyncBoxBody<Bytes, io::Error>> {
    let body = Full::new(Bytes::from(body)).map_err(|never| match never {}).boxed_unsync();
    Response::builder().status(code).body(body).expect("it has a status")
}

/// What an API server says that has no time, or that has lost its etcd; or what stands before it.
fn refusal(world: &Shared) -> Response<UnsyncBoxBody<Bytes, io::Error>> {
    match world.lock().rng.u32(0..3) {
        0 => whole(429, "Too many requests, please try again later.\n".to_owned()),
        1 => whole(503, "<html>503 Service Unavailable</html>".to_owned()),
        _ => whole(500, answers::status(500, "InternalError", "etcdserver: leader changed", None)),
    }
}

/// What comes of a request.
fn answer(world: &mut World, attempt: AttemptId, asked: &Asked) -> Answer {
    match (asked.kind, asked.verb) {
        (None, _) => not_found_path(),
        (Some(kind), Verb::List) => watch::list(world, kind, asked),
        (Some(kind), Verb::Watch) => watch::watch(world, kind, asked),
        (Some(Kind::Node), Verb::Get) => nodes::get(world, asked),
        (Some(Kind::Node), Verb::Patch) => nodes::patch(world, attempt, asked),
        (Some(Kind::Pod), Verb::Evict) => eviction::evict(world, asked),
        (Some(Kind::Pod), Verb::Delete) => eviction::delete(world, asked),
        (Some(Kind::Event), Verb::Create) => Answer::Says(201, asked.body.to_string()),
        (Some(_), Verb::Get) => answers::not_found(asked.plural(), &asked.name),
        (Some(_), _) => not_allowed(),
    }
}
