//! The changes of a pod's state that a person would want to see in the log, and their words.

use super::Unconfirmed;
use super::blocker::Blocker;
use crate::drain::plan::PodName;

/// A pod's change of state, for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transition {
    /// The pod's eviction was granted, or a deletion that nothing blocked any more.
    Evicted(PodName),
    /// The pod has been deleted although something blocked it.
    Forced(PodName, Blocker),
    /// The pod has gone.
    Gone(PodName),
    /// The pod tolerates the cordon, and came after it.
    Returned(PodName),
    /// The pod was shutting down, and is not waited for any longer.
    Unconfirmed(PodName, Unconfirmed),
    /// Something blocks the pod; logged once for each pod and blocker.
    Blocked(PodName, Blocker),
    /// The pod's eviction failed; logged again only when the answer is another one.
    Failed(PodName, String),
    /// A right is missing; logged once, not for each pod.
    Forbidden(String),
}
