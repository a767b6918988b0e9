//! The objects of a cluster, their versions, and what has changed.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::pods::{Budget, Pod};

/// The kinds of object that there are. Of the last three there are none, but the API server knows them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Node,
    Pod,
    Budget,
    Event,
    VolumeAttachment,
    PersistentVolume,
    PersistentVolumeClaim,
}

impl Kind {
    const ALL: [(Self, &'static str, &'static str, &'static str); 7] = [
        (Self::Node, "", "nodes", "Node"),
        (Self::Pod, "", "pods", "Pod"),
        (Self::Budget, "policy", "poddisruptionbudgets", "PodDisruptionBudget"),
        (Self::Event, "events.k8s.io", "events", "Event"),
        (Self::VolumeAttachment, "storage.k8s.io", "volumeattachments", "VolumeAttachment"),
        (Self::PersistentVolume, "", "persistentvolumes", "PersistentVolume"),
        (Self::PersistentVolumeClaim, "", "persistentvolumeclaims", "PersistentVolumeClaim"),
    ];

    pub(crate) fn of(group: &str, plural: &str) -> Option<Self> {
        let known = Self::ALL.into_iter().find(|known| (known.1, known.2) == (group, plural));
        known.map(|(kind, ..)| kind)
    }

    pub(crate) fn plural(self) -> &'static str {
        Self::ALL[self as usize].2
    }

    pub(crate) fn name(self) -> &'static str {
        Self::ALL[self as usize].3
    }
}

/// What lists and watches choose by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) name: String,
    pub(crate) namespace: String,
    /// The node of a pod.
    pub(crate) node: String,
}

/// An object as it is sent.
#[derive(Debug, Clone)]
pub(crate) struct Sent {
    pub(crate) place: Place,
    pub(crate) json: Arc<str>,
}

/// A change of an object.
#[derive(Debug)]
pub(crate) struct Changed {
    pub(crate) version: u64,
    pub(crate) at: Instant,
    pub(crate) kind: Kind,
    pub(crate) is_gone: bool,
    pub(crate) before: Option<Place>,
    pub(crate) now: Sent,
}

/// All objects.
#[derive(Debug, Default)]
pub(crate) struct ClusterState {
    pub(crate) nodes: BTreeMap<String, Value>,
    pub(crate) pods: BTreeMap<String, Pod>,
    pub(crate) budgets: BTreeMap<String, Budget>,
    pub(crate) sent: BTreeMap<(Kind, String), Sent>,
    pub(crate) changes: Vec<Changed>,
    /// From which version on a watch can begin.
    pub(crate) oldest: u64,
    pub(crate) news: Arc<Notify>,
    pub(crate) version: u64,
    next_uid: u32,
}

impl ClusterState {
    /// A UID that nobody has.
    pub(crate) fn uid(&mut self) -> String {
        self.next_uid += 1;
        format!("uid-{:04}", self.next_uid)
    }

    /// Notes an object as it is by now. `version` has been raised for it.
    pub(crate) fn put(&mut self, kind: Kind, key: &str, now: Sent) {
        let before = self.sent.insert((kind, key.to_owned()), now.clone()).map(|before| before.place);
        self.tell(Changed { version: self.version, at: Instant::now(), kind, is_gone: false, before, now });
    }

    /// Notes that an object is no more, as it last was.
    pub(crate) fn drop(&mut self, kind: Kind, key: &str, now: Sent) {
        let before = self.sent.remove(&(kind, key.to_owned())).map(|before| before.place);
        self.tell(Changed { version: self.version, at: Instant::now(), kind, is_gone: true, before, now });
    }

    fn tell(&mut self, changed: Changed) {
        self.changes.push(changed);
        self.news.notify_waiters();
    }

    /// Raises the version, for a change.
    pub(crate) fn next_version(&mut self) -> u64 {
        self.version += 1;
        self.version
    }

    /// Forgets what was before now: watches that begin earlier lose their place.
    pub(crate) fn compact(&mut self) {
        self.oldest = self.version;
    }
}
