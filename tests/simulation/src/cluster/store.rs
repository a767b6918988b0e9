//! Objects of a cluster in their JSON, their versions and changes.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::Instant;

/// Resources of the API server. Events are not stored; claims and CSI nodes never exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Resource {
    Node,
    Pod,
    Budget,
    Event,
    VolumeAttachment,
    PersistentVolume,
    PersistentVolumeClaim,
    CsiNode,
}

impl Resource {
    const ALL: [(Self, &'static str, &'static str, &'static str); 8] = [
        (Self::Node, "", "nodes", "Node"),
        (Self::Pod, "", "pods", "Pod"),
        (Self::Budget, "policy", "poddisruptionbudgets", "PodDisruptionBudget"),
        (Self::Event, "events.k8s.io", "events", "Event"),
        (Self::VolumeAttachment, "storage.k8s.io", "volumeattachments", "VolumeAttachment"),
        (Self::PersistentVolume, "", "persistentvolumes", "PersistentVolume"),
        (Self::PersistentVolumeClaim, "", "persistentvolumeclaims", "PersistentVolumeClaim"),
        (Self::CsiNode, "storage.k8s.io", "csinodes", "CSINode"),
    ];

    pub(super) fn of(group: &str, plural: &str) -> Option<Self> {
        let known = Self::ALL.into_iter().find(|known| (known.1, known.2) == (group, plural));
        known.map(|(resource, ..)| resource)
    }

    pub(super) fn plural(self) -> &'static str {
        Self::ALL[self as usize].2
    }

    pub(super) fn kind(self) -> &'static str {
        Self::ALL[self as usize].3
    }
}

/// Fields that lists and watches select by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) node: String,
}

impl Place {
    fn of(object: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (metadata, spec) = (&object["metadata"], &object["spec"]);
        Self { name: text(&metadata["name"]), namespace: text(&metadata["namespace"]), node: text(&spec["nodeName"]) }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Sent {
    pub(super) place: Place,
    pub(super) json: Arc<str>,
}

#[derive(Debug)]
pub(super) struct Changed {
    pub(super) version: u64,
    pub(super) at: Instant,
    pub(super) resource: Resource,
    pub(super) is_gone: bool,
    pub(super) before: Option<Place>,
    pub(super) now: Sent,
}

#[derive(Debug, Default)]
pub(super) struct Store {
    objects: BTreeMap<(Resource, String), Sent>,
    pub(super) changes: Vec<Changed>,
    /// Oldest version from which a watch can begin.
    pub(super) oldest: u64,
    pub(super) version: u64,
    pub(super) news: Arc<Notify>,
}

impl Store {
    pub(super) fn put(&mut self, resource: Resource, key: &str, object: &Value) {
        let now = self.next(object);
        let before = self.objects.insert((resource, key.to_owned()), now.clone()).map(|before| before.place);
        self.publish(resource, false, before, now);
    }

    /// Removes an object with its last state.
    pub(super) fn drop(&mut self, resource: Resource, key: &str, object: &Value) {
        let now = self.next(object);
        let before = self.objects.remove(&(resource, key.to_owned())).map(|before| before.place);
        self.publish(resource, true, before, now);
    }

    pub(super) fn all(&self, resource: Resource) -> impl Iterator<Item = &Sent> {
        self.objects.iter().filter(move |((of, _), _)| *of == resource).map(|(_, sent)| sent)
    }

    pub(super) fn get(&self, resource: Resource, key: &str) -> Option<&str> {
        self.objects.get(&(resource, key.to_owned())).map(|sent| &*sent.json)
    }

    /// Removes old versions: watches cannot begin there.
    pub(super) fn compact(&mut self) {
        self.oldest = self.version;
    }

    fn next(&mut self, object: &Value) -> Sent {
        self.version += 1;
        let mut object = object.clone();
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        Sent { place: Place::of(&object), json: Arc::from(object.to_string()) }
    }

    fn publish(&mut self, resource: Resource, is_gone: bool, before: Option<Place>, now: Sent) {
        self.changes.push(Changed { version: self.version, at: Instant::now(), resource, is_gone, before, now });
        self.news.notify_waiters();
    }
}
