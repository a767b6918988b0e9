//! Logs what happens to each pod during a drain.

use spillway_core::drain::pod::blocker::Blocker;
use spillway_core::drain::pod::transition::Transition;

pub(super) fn log(transition: Transition) {
    match transition {
        Transition::Evicted(pod) => tracing::info!(pod.name = %pod, "evicted pod {pod}: it is shutting down"),
        Transition::Forced(pod, by) => tracing::warn!(
            pod.name = %pod,
            "forced pod {pod}, blocked by {by}: a later deletion would cut its grace period"
        ),
        Transition::Gone(pod) => tracing::info!(pod.name = %pod, "pod {pod} has gone"),
        Transition::Returned(pod) => tracing::warn!(
            pod.name = %pod,
            "pod {pod} tolerates the cordon and came after it; not waiting for it"
        ),
        Transition::Unconfirmed(pod, why) => tracing::warn!(
            pod.name = %pod,
            "pod {pod} should have shut down, and {}; no longer waiting for it", why.as_str()
        ),
        Transition::Blocked(pod, by) => tracing::info!(
            pod.name = %pod,
            "pod {pod} is blocked by {by}; {}", next_step(&by)
        ),
        Transition::Failed(pod, why) => tracing::warn!(
            pod.name = %pod, error = why,
            "cannot evict pod {pod}; trying again"
        ),
        Transition::Forbidden(why) => {
            tracing::warn!(
                error = why,
                "a permission is missing (apply deploy/rbac.yaml); trying again every few seconds"
            );
        }
    }
}

fn next_step(by: &Blocker) -> &'static str {
    match by {
        Blocker::Budget(_) => "evicting it when the budget allows a disruption",
        Blocker::SeveralBudgets(_) => "the eviction API cannot handle several budgets; trying again every few seconds",
        Blocker::Namespace => "waiting for the deletion of the namespace",
        Blocker::DoNotDisrupt(_) => "leaving it alone until its last safe moment",
        Blocker::FailingEviction(_) => "trying again",
    }
}
