//! Changes of a pod's state that are logged.

use super::Unconfirmed;
use super::blocker::Blocker;
use crate::drain::plan::PodName;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transition {
    /// The API server accepted an eviction, or the deletion of a pod without a blocker.
    Evicted(PodName),
    /// The API server accepted the deletion of a pod despite its blocker.
    Forced(PodName, Blocker),
    Gone(PodName),
    /// The pod tolerates the cordon, and was placed on the node after the cordon.
    Returned(PodName),
    /// The drain no longer waits for the terminating pod.
    Unconfirmed(PodName, Unconfirmed),
    /// The pod is blocked. Logged once for each pod and blocker.
    Blocked(PodName, Blocker),
    /// A request to evict or delete the pod failed. Logged again only if the message changes.
    Failed(PodName, String),
    /// RBAC denied a request of Spillway. Logged once for each missing permission.
    Forbidden(String),
}
