//! The changes of a pod's state that a person would want to see in the log, and their words.

use super::Unconfirmed;
use super::blocker::Blocker;
use crate::drain::plan::PodName;

/// A pod's change of state, for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Transition {
    /// The pod's eviction was granted, or a deletion that nothing blocked any more.
    Evicted(PodName),
    /// The pod has been deleted although something blocked it.
    Forced(PodName, Blocker),
    /// The pod has gone.
    Gone(PodName),
    /// The pod's controller has put it back for the second time.
    PutBack(PodName),
    /// The pod was shutting down, and is not waited for any longer.
    Unconfirmed(PodName, Unconfirmed),
    /// Something blocks the pod; logged once for each pod and blocker.
    Blocked(PodName, Blocker),
    /// The pod's eviction failed; logged again only when the answer is another one.
    Failed(PodName, String),
    /// A right is missing; logged once, not for each pod.
    Forbidden(String),
}

impl Transition {
    /// Writes it into the log.
    pub(crate) fn log(self) {
        match self {
            Self::Evicted(pod) => tracing::info!(pod.name = %pod, "evicted pod {pod}: it is shutting down"),
            Self::Forced(pod, by) => tracing::warn!(
                pod.name = %pod,
                "deleted pod {pod}, which is blocked by {by}: any later, and it would not shut down cleanly"
            ),
            Self::Gone(pod) => tracing::info!(pod.name = %pod, "pod {pod} has gone"),
            Self::PutBack(pod) => tracing::warn!(
                pod.name = %pod,
                "pod {pod} stays: its controller puts it back on the node"
            ),
            Self::Unconfirmed(pod, why) => tracing::warn!(
                pod.name = %pod,
                "pod {pod} should have shut down, and {}: not waiting for it any longer", why.as_str()
            ),
            Self::Blocked(pod, by) => tracing::info!(
                pod.name = %pod,
                "pod {pod} is blocked by {by}; {}", what_follows(&by)
            ),
            Self::Failed(pod, why) => tracing::warn!(
                pod.name = %pod, error = why,
                "cannot evict pod {pod}; trying again"
            ),
            Self::Forbidden(why) => tracing::warn!(
                error = why,
                "a right is missing (apply deploy/rbac.yaml); trying again every few seconds"
            ),
        }
    }
}

fn what_follows(by: &Blocker) -> &'static str {
    match by {
        Blocker::Budget(_) => "evicting it when the budget allows a disruption",
        Blocker::SeveralBudgets => "the eviction API cannot handle that; trying again every few seconds",
        Blocker::Namespace => "waiting for that",
        Blocker::DoNotDisrupt(_) => "leaving it alone as long as that can be",
        Blocker::FailingEviction(_) => "trying again",
    }
}
