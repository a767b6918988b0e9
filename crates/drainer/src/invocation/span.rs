//! Whose a log line is: the span of one notice, by whose fields an operator finds all lines of a drain.

use spillway_core::cluster::ClusterName;
use spillway_notice::Notice;
use tracing::Span;
use tracing::field::Empty;

/// The span of what an invocation does about an event. Of the level ERROR, so that no log level takes it off the lines.
pub(crate) fn open(request_id: &str, event_id: Option<&str>) -> Span {
    tracing::error_span!(
        "notice",
        request.id = request_id,
        event.id = event_id,
        notice.kind = Empty,
        instance.id = Empty,
        cluster.name = Empty,
        node.name = Empty
    )
}

/// Adds which instance the notice is about.
pub(crate) fn instance(notice: &Notice) {
    let span = Span::current();
    span.record("notice.kind", notice.kind.as_str());
    span.record("instance.id", notice.instance.as_str());
}

/// Adds the instance's cluster.
pub(crate) fn cluster(name: &ClusterName) {
    Span::current().record("cluster.name", name.as_str());
}

/// Adds the instance's node.
pub(crate) fn node(name: &str) {
    Span::current().record("node.name", name);
}
