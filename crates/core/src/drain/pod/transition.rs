//! Changes of a pod's state that are logged.

use super::Unconfirmed;
use super::blocker::Blocker;
use crate::drain::plan::PodName;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transition {
    /// The pod's eviction was granted, or its deletion without a blocker.
    Evicted(PodName),
    /// The pod was deleted despite its blocker.
    Forced(PodName, Blocker),
    Gone(PodName),
    /// The pod tolerates the cordon, and came after it.
    Returned(PodName),
    /// The pod was terminating, and is not waited for any longer.
    Unconfirmed(PodName, Unconfirmed),
    /// A blocker of the pod, logged once for each pod and blocker.
    Blocked(PodName, Blocker),
    /// The pod's eviction failed; logged again only if the message changes.
    Failed(PodName, String),
    /// A right is missing; logged once, not for each pod.
    Forbidden(String),
}
