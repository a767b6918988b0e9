//! An event as the API server takes it (`events.k8s.io/v1`).

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};

use super::{About, Drain, EventSeverity, Told};

/// Where the events of objects without a namespace are, by the API server's own rule.
const NAMESPACE_OF_NODES: &str = "default";
/// The API server's limit.
const LONGEST_NOTE: usize = 1024;
/// The annotation by which a program reads how many pods have to leave: `tools/spillway drains` does.
const PODS: &str = "spillway/pods";
/// A name may have 253 characters; the number behind it takes up to 17.
const LONGEST_NAME: usize = 230;

/// The event. `now` and `number` tell it from every other of the same object.
pub(super) fn event(told: Told<'_>, drain: &Drain<'_>, now: Timestamp, number: i128) -> Event {
    let Told { about, severity, reason, note, at, pods } = told;
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
        // Which is how the log and the receipt are found.
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

/// `kubectl describe node` shows the events that have the node's UID, and those that have its name for a UID, as
/// kubelets write it. The name is what we know without a request.
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

/// A name as client-go gives them: the object's, and a time in hexadecimal digits.
fn unique(name: &str, nanosecond: i128) -> String {
    let name = cut(name.to_owned(), LONGEST_NAME);
    format!("{}.{nanosecond:x}", name.trim_end_matches(|c: char| !c.is_ascii_alphanumeric()))
}

/// No more than so many bytes of it.
fn cut(mut text: String, longest: usize) -> String {
    text.truncate(text.floor_char_boundary(longest));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_name_as_much_is_kept_as_leaves_room_for_the_number() {
        let name = unique(&"n".repeat(253), i128::from(i64::MAX));
        assert_eq!(name, format!("{}.7fffffffffffffff", "n".repeat(230)));
    }
}
