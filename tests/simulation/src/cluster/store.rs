//! The objects of a cluster as they are sent, their versions, and what has changed.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::Instant;

/// The resources that the API server knows. Of the last there are no objects, and events are not kept.
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

/// What lists and watches select by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) name: String,
    pub(super) namespace: String,
    /// The node of a pod.
    pub(super) node: String,
}

impl Place {
    fn of(object: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (metadata, spec) = (&object["metadata"], &object["spec"]);
        Self { name: text(&metadata["name"]), namespace: text(&metadata["namespace"]), node: text(&spec["nodeName"]) }
    }
}

/// An object as it is sent.
#[derive(Debug, Clone)]
pub(super) struct Sent {
    pub(super) place: Place,
    pub(super) json: Arc<str>,
}

/// A change of an object.
#[derive(Debug)]
pub(super) struct Changed {
    pub(super) version: u64,
    pub(super) at: Instant,
    pub(super) resource: Resource,
    pub(super) is_gone: bool,
    pub(super) before: Option<Place>,
    pub(super) now: Sent,
}

/// All objects.
#[derive(Debug, Default)]
pub(super) struct Store {
    objects: BTreeMap<(Resource, String), Sent>,
    pub(super) changes: Vec<Changed>,
    /// From which version on a watch can begin.
    pub(super) oldest: u64,
    pub(super) version: u64,
    pub(super) news: Arc<Notify>,
}

impl Store {
    /// Keeps an object as it is by now.
    pub(super) fn put(&mut self, resource: Resource, key: &str, object: &Value) {
        let now = self.next(object);
        let before = self.objects.insert((resource, key.to_owned()), now.clone()).map(|before| before.place);
        self.tell(resource, false, before, now);
    }

    /// Drops an object, which was last so.
    pub(super) fn drop(&mut self, resource: Resource, key: &str, object: &Value) {
        let now = self.next(object);
        let before = self.objects.remove(&(resource, key.to_owned())).map(|before| before.place);
        self.tell(resource, true, before, now);
    }

    /// The objects of a resource, in their order.
    pub(super) fn all(&self, resource: Resource) -> impl Iterator<Item = &Sent> {
        self.objects.iter().filter(move |((of, _), _)| *of == resource).map(|(_, sent)| sent)
    }

    /// An object as it was sent last.
    pub(super) fn get(&self, resource: Resource, key: &str) -> Option<&str> {
        self.objects.get(&(resource, key.to_owned())).map(|sent| &*sent.json)
    }

    /// Forgets what was before now: watches that begin earlier lose their place.
    pub(super) fn compact(&mut self) {
        self.oldest = self.version;
    }

    fn next(&mut self, object: &Value) -> Sent {
        self.version += 1;
        let mut object = object.clone();
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        Sent { place: Place::of(&object), json: Arc::from(object.to_string()) }
    }

    fn tell(&mut self, resource: Resource, is_gone: bool, before: Option<Place>, now: Sent) {
        self.changes.push(Changed { version: self.version, at: Instant::now(), resource, is_gone, before, now });
        self.news.notify_waiters();
    }
}
