//! The changes of state that a person would want to see in the log, and their words.

use super::blocker::Blocker;
use super::plan::PodName;

/// A change of state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Transition {
    /// The pod has been told to leave.
    Evicted(PodName),
    /// The pod has been deleted past what held it.
    Forced(PodName, Blocker),
    /// The pod has gone.
    Gone(PodName),
    /// The pod was shutting down when its node stopped answering.
    Unconfirmed(PodName),
    /// Something holds the pod; told once.
    Held(PodName, Blocker),
    /// The eviction failed; told the first time only.
    Failed(PodName, String),
    /// A right is missing; told once, not for each pod.
    Forbidden(String),
}

impl Transition {
    /// Writes it into the log.
    pub(crate) fn tell(self) {
        match self {
            Self::Evicted(pod) => tracing::info!(pod.name = %pod, "evicted pod {pod}: it is shutting down"),
            Self::Forced(pod, hold) => tracing::warn!(
                pod.name = %pod,
                "deleted pod {pod}, which {hold} held: any later, and it would not shut down cleanly"
            ),
            Self::Gone(pod) => tracing::info!(pod.name = %pod, "pod {pod} has gone"),
            Self::Unconfirmed(pod) => tracing::warn!(
                pod.name = %pod,
                "pod {pod} should have shut down, and its node has stopped answering: not waiting for it any longer"
            ),
            Self::Held(pod, hold) => tracing::info!(
                pod.name = %pod,
                "{hold} holds pod {pod}; {}", what_follows(&hold)
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

fn what_follows(hold: &Blocker) -> &'static str {
    match hold {
        Blocker::Budget(_) => "asking again when it has room",
        Blocker::SeveralBudgets => "the eviction API cannot handle that; asking again every few seconds",
        Blocker::Namespace => "waiting for that",
        Blocker::DoNotDisrupt(_) => "leaving it alone as long as that can be",
        Blocker::FailingEviction(_) => "trying again",
    }
}
