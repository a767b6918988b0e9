//! Lists and watches, with lags, ends and lost places.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::Cluster;
use super::answers::{ApiAnswer, expired};
use super::request::ApiRequest;
use super::store::{Changed, Place, Resource, Store};

/// Objects of a list or watch.
#[derive(Debug)]
struct Selection {
    resource: Resource,
    namespace: Option<String>,
    name: Option<String>,
    node: Option<String>,
}

impl Selection {
    fn of(resource: Resource, request: &ApiRequest) -> Self {
        let field = |field| request.selected(field).map(str::to_owned);
        let namespace = request.namespace.clone();
        Self { resource, namespace, name: field("metadata.name"), node: field("spec.nodeName") }
    }

    fn has(&self, place: &Place) -> bool {
        let is = |wanted: &Option<String>, found: &String| wanted.as_ref().is_none_or(|wanted| wanted == found);
        is(&self.namespace, &place.namespace) && is(&self.name, &place.name) && is(&self.node, &place.node)
    }

    /// Returns the type of a change for a watch of this selection.
    fn event(&self, change: &Changed) -> Option<&'static str> {
        if change.resource != self.resource {
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

/// Early end of a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Break {
    Ends,
    Resets,
    Expires,
}

#[derive(Debug)]
pub(crate) struct Watch {
    pub(crate) cluster: usize,
    selection: Selection,
    version: u64,
    ends: Instant,
    breaks: Option<(Instant, Break)>,
    /// Initial events of `sendInitialEvents`.
    first: VecDeque<String>,
    is_over: bool,
}

/// Lists objects, in pages if the request has a limit.
pub(super) fn list(store: &Store, resource: Resource, request: &ApiRequest) -> ApiAnswer {
    let selection = Selection::of(resource, request);
    let limit = request.parameter("limit").and_then(|limit| limit.parse().ok()).unwrap_or(usize::MAX);
    let from: usize = request.parameter("continue").and_then(|token| token.parse().ok()).unwrap_or(0);
    let all: Vec<_> = objects(store, &selection).collect();
    let mut metadata = json!({"resourceVersion": store.version.to_string()});
    let to = from.saturating_add(limit);
    if to < all.len() {
        metadata["continue"] = json!(to.to_string());
    }
    let items = all[from.min(all.len())..to.min(all.len())].join(",");
    let kind = resource.kind();
    let list = format!(r#"{{"apiVersion":"v1","kind":"{kind}List","metadata":{metadata},"items":[{items}]}}"#);
    ApiAnswer::Says(200, list)
}

fn objects<'s>(store: &'s Store, selection: &Selection) -> impl Iterator<Item = &'s str> {
    store.all(selection.resource).filter(|sent| selection.has(&sent.place)).map(|sent| &*sent.json)
}

impl Cluster {
    /// Starts a watch at a version, or now.
    pub(super) fn watch(&mut self, resource: Resource, request: &ApiRequest) -> ApiAnswer {
        let selection = Selection::of(resource, request);
        let now_at = self.store.version;
        let from = request.parameter("resourceVersion").and_then(|version| version.parse().ok());
        let version: u64 = from.filter(|version| *version > 0).unwrap_or(now_at);
        let mut first = VecDeque::new();
        if request.parameter("sendInitialEvents") == Some("true") {
            let objects = objects(&self.store, &selection);
            first.extend(objects.map(|json| format!(r#"{{"type":"ADDED","object":{json}}}"#)));
            first.push_back(end_of_first(resource, now_at));
        }
        let seconds = request.parameter("timeoutSeconds").and_then(|seconds| seconds.parse().ok()).unwrap_or(1800);
        let now = Instant::now();
        let mut breaks = None;
        if version < self.store.oldest {
            breaks = Some((now, Break::Expires));
        } else if self.dice.perhaps(self.plan.watch_breaks) {
            let at = now + self.dice.ms(0..60_000);
            breaks = Some((at, [Break::Ends, Break::Resets, Break::Expires][self.dice.below(3)]));
        }
        let ends = now + Duration::from_secs(seconds);
        ApiAnswer::Watches(Watch { cluster: self.number, selection, version, ends, breaks, first, is_over: false })
    }
}

/// Bookmark at the end of the initial events.
fn end_of_first(resource: Resource, version: u64) -> String {
    let metadata =
        json!({"resourceVersion": version.to_string(), "annotations": {"k8s.io/initial-events-end": "true"}});
    let kind = resource.kind();
    format!(r#"{{"type":"BOOKMARK","object":{{"apiVersion":"v1","kind":"{kind}","metadata":{metadata}}}}}"#)
}

/// Next step of a watch. `Nothing` lasts until there is news, at most.
#[derive(Debug)]
pub(crate) enum Next {
    Line(String, Instant),
    Nothing { until: Instant },
    Resets,
    Ends,
}

impl Cluster {
    pub(crate) fn news(&self) -> Arc<Notify> {
        Arc::clone(&self.store.news)
    }

    pub(crate) fn next(&mut self, watch: &mut Watch) -> Next {
        let now = Instant::now();
        if watch.is_over {
            return Next::Ends;
        }
        if let Some(line) = watch.first.pop_front() {
            return Next::Line(line, now);
        }
        let breaks = watch.breaks.filter(|(at, _)| *at <= now).map(|(_, how)| how);
        if breaks != Some(Break::Expires)
            && let Some((line, at)) = self.due(watch)
        {
            return Next::Line(line, at);
        }
        let until = watch.breaks.map_or(watch.ends, |(at, _)| at.min(watch.ends));
        if now < until {
            return Next::Nothing { until };
        }
        watch.is_over = true;
        match breaks {
            Some(Break::Resets) => Next::Resets,
            Some(Break::Expires) => {
                Next::Line(format!(r#"{{"type":"ERROR","object":{}}}"#, expired(watch.version)), now)
            }
            Some(Break::Ends) | None => Next::Ends,
        }
    }

    /// Returns the next change of a watch, and the time of its line.
    fn due(&mut self, watch: &mut Watch) -> Option<(String, Instant)> {
        let from = self.store.changes.partition_point(|change| change.version <= watch.version);
        let mut changes = self.store.changes[from..].iter();
        let Some((event, change)) = changes.find_map(|change| Some((watch.selection.event(change)?, change))) else {
            watch.version = watch.version.max(self.store.version);
            return None;
        };
        watch.version = change.version;
        let line = format!(r#"{{"type":"{event}","object":{}}}"#, change.now.json);
        let (at, most) = (change.at, self.plan.watch_lag_ms);
        let lag = if most == 0 { Duration::ZERO } else { self.dice.ms(0..most) };
        Some((line, at + lag))
    }
}
