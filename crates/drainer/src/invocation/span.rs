//! Log span of a notice. Each log line of the drain has the span's fields.

use spillway_core::cluster::ClusterName;
use spillway_notice::Notice;
use tracing::Span;
use tracing::field::Empty;

/// Opens the span of an invocation, at level ERROR so that every log level includes the span.
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

pub(crate) fn instance(notice: &Notice) {
    let span = Span::current();
    span.record("notice.kind", notice.kind.as_str());
    span.record("instance.id", notice.instance.as_str());
}

pub(crate) fn cluster(name: &ClusterName) {
    Span::current().record("cluster.name", name.as_str());
}

pub(crate) fn node(name: &str) {
    Span::current().record("node.name", name);
}
