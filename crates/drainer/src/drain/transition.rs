//! Log lines about pods: one for each transition.

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
            tracing::warn!(error = why, "a right is missing (apply deploy/rbac.yaml); trying again every few seconds");
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

#[cfg(test)]
mod tests {
    use spillway_core::drain::plan::PodName;
    use spillway_core::drain::pod::Unconfirmed;
    use spillway_core::drain::pod::blocker::BudgetName;

    use super::*;
    use crate::test_support::log::logged;

    #[test]
    fn each_transition_is_logged_with_the_next_step() {
        let pod = || PodName { namespace: "shop".to_owned(), name: "web-1".to_owned() };
        let budget = || Blocker::Budget(BudgetName { namespace: "shop".to_owned(), name: "web".to_owned() });
        let why = || "the API server answered 403".to_owned();
        let blockers =
            [budget(), Blocker::SeveralBudgets(Vec::new()), Blocker::Namespace, Blocker::FailingEviction(why())];
        let changes = [
            Transition::Evicted(pod()),
            Transition::Forced(pod(), budget()),
            Transition::Gone(pod()),
            Transition::Returned(pod()),
            Transition::Unconfirmed(pod(), Unconfirmed::Silent),
            Transition::Failed(pod(), why()),
            Transition::Forbidden(why()),
        ];
        let changes = changes.into_iter().chain(blockers.map(|by| Transition::Blocked(pod(), by)));
        insta::assert_snapshot!(logged(|| changes.for_each(log)).join("\n"));
    }
}
