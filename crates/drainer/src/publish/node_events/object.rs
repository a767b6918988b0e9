//! Builds Kubernetes event objects (`events.k8s.io/v1`).

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};

use super::{About, EventDraft, EventSeverity, ReceiptDrain};

/// Namespace that the API server requires for events about cluster-scoped objects.
const NAMESPACE_OF_NODES: &str = "default";
/// Maximum length of an event's note that the API server accepts.
const LONGEST_NOTE: usize = 1024;
/// Annotation with the number of pods that have to leave. `tools/spillway drains` reads the annotation.
const PODS: &str = "spillway/pods";
/// Maximum length of the node's or pod's name within an event's name. An event's name may have 253 characters.
const LONGEST_NAME: usize = 230;

/// Builds an event. `now` and `number` make the event's name unique.
pub(super) fn event(draft: EventDraft<'_>, drain: &ReceiptDrain<'_>, now: Timestamp, number: i128) -> Event {
    let EventDraft { about, severity, reason, note, at, pods } = draft;
    let (regarding, related) = match about {
        About::Node => (node(drain.node), None),
        About::Pod(pod) => (of_pod(&pod.pod, &pod.uid), Some(node(drain.node))),
    };
    let annotations = pods.map(|pods| BTreeMap::from([(PODS.to_owned(), pods.to_string())]));
    let name = unique(regarding.name.as_deref().unwrap_or_default(), now.as_nanosecond() + number);
    let namespace = regarding.namespace.clone().unwrap_or_else(|| NAMESPACE_OF_NODES.to_owned());
    Event {
        metadata: ObjectMeta { name: Some(name), namespace: Some(namespace), annotations, ..ObjectMeta::default() },
        event_time: Some(MicroTime(at.unwrap_or(now))),
        type_: Some(severity.as_str().to_owned()),
        action: Some("Drain".to_owned()),
        reason: Some(reason.to_owned()),
        note: Some(cut(note, LONGEST_NOTE)),
        regarding: Some(regarding),
        related,
        reporting_controller: Some("spillway".to_owned()),
        // The request id leads to the log and the receipt.
        reporting_instance: Some(drain.receipt.request_id.clone()),
        ..Event::default()
    }
}

impl EventSeverity {
    fn as_str(self) -> &'static str {
        match self {
            Self::Warning => "Warning",
            Self::Normal => "Normal",
        }
    }
}

/// Returns the reference to a node. The UID is the node's name, as in the kubelet's events.
fn node(name: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Node".to_owned()),
        name: Some(name.to_owned()),
        uid: Some(name.to_owned()),
        ..ObjectReference::default()
    }
}

fn of_pod(name: &str, uid: &str) -> ObjectReference {
    let (namespace, name) = name.split_once('/').expect("a receipt names pods with their namespace");
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Pod".to_owned()),
        namespace: Some(namespace.to_owned()),
        name: Some(name.to_owned()),
        uid: Some(uid.to_owned()),
        ..ObjectReference::default()
    }
}

/// Returns the event name as in client-go: the object's name, a dot and a time in hexadecimal digits.
fn unique(name: &str, nanosecond: i128) -> String {
    let name = cut(name.to_owned(), LONGEST_NAME);
    format!("{}.{nanosecond:x}", name.trim_end_matches(|c: char| !c.is_ascii_alphanumeric()))
}

/// Truncates a text to at most `longest` bytes.
fn cut(mut text: String, longest: usize) -> String {
    text.truncate(text.floor_char_boundary(longest));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_name_is_cut_for_the_number() {
        let name = unique(&"n".repeat(253), i128::from(i64::MAX));
        assert_eq!(name, format!("{}.7fffffffffffffff", "n".repeat(230)));
    }
}
