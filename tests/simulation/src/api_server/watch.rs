//! Lists and watches: what they choose, and how a watch lags, ends and loses its place.

use std::io;
use std::time::Duration;

use futures_util::stream;
use http::Response;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Bytes, Frame};
use serde_json::json;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::answers::{Answer, expired};
use super::cluster::{Changed, Kind, Place};
use super::request::Asked;
use crate::world::{Shared, World};

/// Which objects are meant.
#[derive(Debug)]
struct Choice {
    kind: Kind,
    namespace: Option<String>,
    name: Option<String>,
    node: Option<String>,
}

impl Choice {
    fn of(kind: Kind, asked: &Asked) -> Self {
        let field = |field| asked.selected(field).map(str::to_owned);
        let namespace = asked.namespace.clone();
        Self { kind, namespace, name: field("metadata.name"), node: field("spec.nodeName") }
    }

    fn has(&self, place: &Place) -> bool {
        let is = |wanted: &Option<String>, found: &String| wanted.as_ref().is_none_or(|wanted| wanted == found);
        is(&self.namespace, &place.namespace) && is(&self.name, &place.name) && is(&self.node, &place.node)
    }

    /// What a change means for who watches these.
    fn event(&self, change: &Changed) -> Option<&'static str> {
        if change.kind != self.kind {
            return None;
        }
        let was = change.before.as_ref().is_some_and(|before| self.has(before));
        let is = !change.is_gone && self.has(&change.now.place);
        match (was, is) {
            (false, true) => Some("ADDED"),
            (true, true) => Some("MODIFIED"),
            (true, false) => Some("DELETED"),
            (false, false) => None,
        }
    }
}

/// How a watch ends before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Break {
    Ends,
    Resets,
    Expires,
}

/// A watch that is to begin.
#[derive(Debug)]
pub(crate) struct WatchRequest {
    choice: Choice,
    version: u64,
    ends: Instant,
    breaks: Option<(Instant, Break)>,
    /// Objects that come first, where the watch was asked for them.
    first: Vec<String>,
    is_over: bool,
}

/// All that are there, by pages if that is asked.
pub(crate) fn list(world: &mut World, kind: Kind, asked: &Asked) -> Answer {
    let choice = Choice::of(kind, asked);
    let limit = asked.parameter("limit").and_then(|limit| limit.parse().ok()).unwrap_or(usize::MAX);
    let from: usize = asked.parameter("continue").and_then(|token| token.parse().ok()).unwrap_or(0);
    let all: Vec<_> = objects(world, &choice).collect();
    let mut metadata = json!({"resourceVersion": world.cluster.version.to_string()});
    let to = from.saturating_add(limit);
    if to < all.len() {
        metadata["continue"] = json!(to.to_string());
    }
    let items = all[from.min(all.len())..to.min(all.len())].join(",");
    let name = kind.name();
    Answer::Says(200, format!(r#"{{"apiVersion":"v1","kind":"{name}List","metadata":{metadata},"items":[{items}]}}"#))
}

fn objects<'w>(world: &'w World, choice: &'w Choice) -> impl Iterator<Item = &'w str> {
    let of_kind = world.cluster.sent.iter().filter(|((kind, _), _)| *kind == choice.kind);
    of_kind.filter(|(_, sent)| choice.has(&sent.place)).map(|(_, sent)| &*sent.json)
}

/// What changes from a version on, or from now.
pub(crate) fn watch(world: &mut World, kind: Kind, asked: &Asked) -> Answer {
    let choice = Choice::of(kind, asked);
    let asked_for = asked.parameter("resourceVersion").and_then(|version| version.parse().ok());
    let version: u64 = asked_for.filter(|version| *version > 0).unwrap_or(world.cluster.version);
    let mut first = Vec::new();
    if asked.parameter("sendInitialEvents") == Some("true") {
        first.extend(objects(world, &choice).map(|json| format!(r#"{{"type":"ADDED","object":{json}}}"#)));
        let ends = json!({"k8s.io/initial-events-end": "true"});
        first.push(bookmark(kind, world.cluster.version, Some(&ends)));
    }
    let seconds = asked.parameter("timeoutSeconds").and_then(|seconds| seconds.parse().ok()).unwrap_or(1800);
    let now = Instant::now();
    let mut breaks = None;
    if version < world.cluster.oldest {
        breaks = Some((now, Break::Expires));
    } else if world.perhaps(world.plan.watch_breaks) {
        let after = world.ms(0..60_000);
        breaks = Some((now + after, [Break::Ends, Break::Resets, Break::Expires][world.rng.usize(0..3)]));
    }
    let ends = now + Duration::from_secs(seconds);
    Answer::Watches(WatchRequest { choice, version, ends, breaks, first, is_over: false })
}

fn bookmark(kind: Kind, version: u64, annotations: Option<&serde_json::Value>) -> String {
    let mut metadata = json!({"resourceVersion": version.to_string()});
    if let Some(annotations) = annotations {
        metadata["annotations"] = annotations.clone();
    }
    let name = kind.name();
    format!(r#"{{"type":"BOOKMARK","object":{{"apiVersion":"v1","kind":"{name}","metadata":{metadata}}}}}"#)
}

impl WatchRequest {
    /// The stream of changes.
    pub(crate) fn begin(mut self, world: Shared) -> Response<UnsyncBoxBody<Bytes, io::Error>> {
        self.first.reverse();
        let lines = stream::unfold((self, world), async |(mut watch, world)| {
            let line = watch.next(&world).await?;
            Some((line.map(|line| Frame::data(Bytes::from(line + "\n"))), (watch, world)))
        });
        Response::builder().status(200).body(StreamBody::new(lines).boxed_unsync()).expect("it has a status")
    }

    /// The next line; none, when the watch ends.
    async fn next(&mut self, world: &Shared) -> Option<Result<String, io::Error>> {
        if let Some(line) = self.first.pop() {
            return Some(Ok(line));
        }
        loop {
            if self.is_over {
                return None;
            }
            let news = world.lock().cluster.news.clone();
            let news = news.notified();
            if let Some((line, at)) = self.due(world) {
                sleep_until(at).await;
                return Some(Ok(line));
            }
            let until = self.breaks.map_or(self.ends, |(at, _)| at.min(self.ends));
            if timeout_at(until, news).await.is_ok() {
                continue;
            }
            self.is_over = true;
            match self.breaks.filter(|(at, _)| *at <= Instant::now()) {
                Some((_, Break::Resets)) => return Some(Err(io::Error::other("the connection was reset"))),
                Some((_, Break::Expires)) => {
                    return Some(Ok(format!(r#"{{"type":"ERROR","object":{}}}"#, expired(self.version))));
                }
                Some((_, Break::Ends)) | None => return None,
            }
        }
    }

    /// What has happened and was not told, and when it is told.
    fn due(&mut self, world: &Shared) -> Option<(String, Instant)> {
        if self.breaks.is_some_and(|(at, how)| how == Break::Expires && at <= Instant::now()) {
            return None;
        }
        let mut world = world.lock();
        let from = world.cluster.changes.partition_point(|change| change.version <= self.version);
        let due = world.cluster.changes[from..].iter().find_map(|change| {
            let event = self.choice.event(change)?;
            let line = format!(r#"{{"type":"{event}","object":{}}}"#, change.now.json);
            Some((line, change.version, change.at))
        });
        let Some((line, version, at)) = due else {
            self.version = self.version.max(world.cluster.version);
            return None;
        };
        self.version = version;
        let most = world.plan.watch_lag_ms;
        let lag = if most == 0 { Duration::ZERO } else { world.ms(0..most) };
        Some((line, at + lag))
    }
}
