//! The objects of a cluster, their versions, and what has changed.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::pods::{Budget, Pod};

/// The kinds of object that there are. Of the last three there are none, but the API server knows them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) enum Kind {
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

    pub(super) fn of(group: &str, plural: &str) -> Option<Self> {
        let known = Self::ALL.into_iter().find(|known| (known.1, known.2) == (group, plural));
        known.map(|(kind, ..)| kind)
    }

    pub(super) fn plural(self) -> &'static str {
        Self::ALL[self as usize].2
    }

    pub(super) fn name(self) -> &'static str {
        Self::ALL[self as usize].3
    }
}

/// What lists and watches choose by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) name: String,
    pub(super) namespace: String,
    /// The node of a pod.
    pub(super) node: String,
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
    pub(super) kind: Kind,
    pub(super) is_gone: bool,
    pub(super) before: Option<Place>,
    pub(super) now: Sent,
}

/// All objects.
#[derive(Debug, Default)]
pub(in super::super) struct ClusterState {
    pub(in super::super) nodes: BTreeMap<String, Value>,
    pub(in super::super) pods: BTreeMap<String, Pod>,
    pub(in super::super) budgets: BTreeMap<String, Budget>,
    pub(super) sent: BTreeMap<(Kind, String), Sent>,
    pub(super) changes: Vec<Changed>,
    /// From which version on a watch can begin.
    pub(super) oldest: u64,
    pub(super) news: Arc<Notify>,
    pub(in super::super) version: u64,
    next_uid: u32,
}

impl ClusterState {
    /// A UID that nobody has.
    pub(in super::super) fn uid(&mut self) -> String {
        self.next_uid += 1;
        format!("uid-{:04}", self.next_uid)
    }

    /// Notes an object as it is by now. `version` has been raised for it.
    pub(super) fn put(&mut self, kind: Kind, key: &str, now: Sent) {
        let before = self.sent.insert((kind, key.to_owned()), now.clone()).map(|before| before.place);
        self.tell(Changed { version: self.version, at: Instant::now(), kind, is_gone: false, before, now });
    }

    /// Notes that an object is no more, as it last was.
    pub(super) fn drop(&mut self, kind: Kind, key: &str, now: Sent) {
        let before = self.sent.remove(&(kind, key.to_owned())).map(|before| before.place);
        self.tell(Changed { version: self.version, at: Instant::now(), kind, is_gone: true, before, now });
    }

    fn tell(&mut self, changed: Changed) {
        self.changes.push(changed);
        self.news.notify_waiters();
    }

    /// Raises the version, for a change.
    pub(super) fn next_version(&mut self) -> u64 {
        self.version += 1;
        self.version
    }

    /// Forgets what was before now: watches that begin earlier lose their place.
    pub(in super::super) fn compact(&mut self) {
        self.oldest = self.version;
    }
}
