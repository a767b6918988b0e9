//! Changes of a pod's state that are logged.

use super::Unconfirmed;
use super::blocker::Blocker;
use crate::drain::plan::PodName;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transition {
    /// The pod was evicted, or deleted while nothing blocked it.
    Evicted(PodName),
    /// The pod was deleted despite its blocker.
    Forced(PodName, Blocker),
    Gone(PodName),
    /// The pod was placed after the cordon, which it tolerates.
    Returned(PodName),
    /// The pod was terminating, and the drain no longer waits for its end.
    Unconfirmed(PodName, Unconfirmed),
    /// The pod is blocked. Logged once for each pod and blocker.
    Blocked(PodName, Blocker),
    /// A request to the pod failed. Logged again only if the message changes.
    Failed(PodName, String),
    /// A right is missing. Logged once, not for each pod.
    Forbidden(String),
}
