//! A drain that others do, watched: no answer to a request says what blocks a pod, so the budgets do. Pure.

use std::collections::BTreeSet;

use tokio::time::Instant;

use super::Progress;
use crate::drain::pod::blocker::Blocker;

impl Progress {
    /// The namespaces whose budgets may block pods.
    pub fn namespaces_to_observe(&self) -> BTreeSet<&str> {
        self.pods.values().filter(|pod| pod.waits()).map(|pod| pod.name.namespace.as_str()).collect()
    }

    /// Notes what blocks each pod that has yet to leave, as far as its annotations and its budgets say.
    pub fn note_blockers(&mut self, now: Instant) {
        for pod in self.pods.values_mut().filter(|pod| pod.waits() && !pod.has_finished) {
            if matches!(pod.blocked.by(), Some(Blocker::DoNotDisrupt(_))) {
                continue;
            }
            match self.budgets.blocking(pod) {
                Some(by) => drop(pod.block(by, None)),
                None => pod.release(|_| true, now),
            }
        }
    }

    /// When there may be [`news`](Self::news) of such a drain by the mere passing of time.
    pub fn news_due(&self) -> Option<Instant> {
        self.blockage.due(self.window)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::*;
    use crate::clock::Clock;
    use crate::drain::blockage::BlockageNews;
    use crate::drain::budgets::WatchScope;
    use crate::drain::deadline::{MARGIN, Termination, Window};
    use crate::drain::plan::PodUid;
    use crate::drain::pod::PodState;
    use crate::drain::put_back::PutBack;
    use crate::kube::change::Change;
    use crate::kube::pod::Pod;

    fn pod(changes: &Value) -> Pod {
        let mut pod =
            json!({"metadata": {"name": "db-0", "namespace": "shop", "uid": "db-0", "labels": {"app": "db"}}});
        for (key, value) in changes.as_object().into_iter().flatten() {
            pod["metadata"][key] = value.clone();
        }
        serde_json::from_value(pod).expect("a pod")
    }

    fn watched(pod: &Pod) -> (Progress, Instant) {
        let (now, clock) = (Instant::now(), Clock::starting_at("2026-11-21T03:12:00Z".parse().expect("a time")));
        let end = now + Duration::from_mins(2);
        let instance_goes = Termination::Unknown;
        let window =
            Window { start: now, end, instance_goes, margin: MARGIN, detaching: Duration::ZERO, dead_since: None };
        let pods = std::slice::from_ref(pod);
        let put_back = PutBack::of(pods, None, clock.now());
        (Progress::new(pods, put_back, window, clock, now), now)
    }

    fn see_budgets(progress: &mut Progress, allowed: &[(&str, i32)], now: Instant) {
        let budget = |(name, allowed): &(&str, i32)| {
            json!({"metadata": {"name": name, "namespace": "shop"}, "spec": {"selector": {"matchLabels": {"app": "db"}}},
                "status": {"disruptionsAllowed": allowed}})
        };
        let budgets = allowed.iter().map(|one| serde_json::from_value(budget(one)).expect("a budget")).collect();
        let scope = WatchScope::Namespace("shop".to_owned());
        progress.budgets_changed(&scope, Change::OnlyThese(budgets), now);
        progress.note_blockers(now);
    }

    fn blocker(progress: &Progress) -> Option<String> {
        progress.pods[&PodUid("db-0".to_owned())].blocked.by().map(ToString::to_string)
    }

    #[tokio::test(start_paused = true)]
    async fn a_pod_is_blocked_while_its_one_budget_allows_nothing_or_it_has_several() {
        let (mut progress, now) = watched(&pod(&json!({})));
        progress.note_blockers(now);
        assert_eq!(blocker(&progress), None, "no budget is known");
        assert_eq!(progress.namespaces_to_observe(), BTreeSet::from(["shop"]));
        see_budgets(&mut progress, &[("db", 0)], now);
        assert_eq!(blocker(&progress).as_deref(), Some("PodDisruptionBudget db"));
        see_budgets(&mut progress, &[("db", 1)], now);
        assert_eq!(blocker(&progress), None);
        see_budgets(&mut progress, &[("db", 1), ("more", 1)], now);
        assert_eq!(blocker(&progress).as_deref(), Some("PodDisruptionBudgets db and more (leave the pod one)"));
        see_budgets(&mut progress, &[], now);
        assert_eq!(blocker(&progress), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_do_not_disrupt_stays_what_blocks_it_whatever_its_budget_says() {
        let (mut progress, now) = watched(&pod(&json!({"annotations": {"karpenter.sh/do-not-disrupt": "true"}})));
        see_budgets(&mut progress, &[("db", 0)], now);
        assert!(blocker(&progress).is_some_and(|by| by.contains("do-not-disrupt")), "{:?}", blocker(&progress));
    }

    #[tokio::test(start_paused = true)]
    async fn what_somebody_has_leave_is_leaving_and_was_blocked() {
        let (mut progress, now) = watched(&pod(&json!({})));
        see_budgets(&mut progress, &[("db", 0)], now);
        let leaving = json!({"deletionTimestamp": "2026-11-21T03:12:40Z", "deletionGracePeriodSeconds": 30});
        progress.changed(Change::Seen(Box::new(pod(&leaving))), now);
        see_budgets(&mut progress, &[("db", 0)], now);
        let pod = &progress.pods[&PodUid("db-0".to_owned())];
        assert!(matches!(pod.state, PodState::Leaving { .. }), "{:?}", pod.state);
        assert_eq!(pod.blocked.last().map(ToString::to_string).as_deref(), Some("PodDisruptionBudget db"));
        assert!(progress.namespaces_to_observe().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn what_blocks_it_for_long_is_news_once_and_nothing_forces_it() {
        let (mut progress, now) = watched(&pod(&json!({})));
        see_budgets(&mut progress, &[("db", 0)], now);
        assert_eq!(progress.news(now), None);
        let due = progress.news_due().expect("it has begun to block");
        assert_eq!(due, now + Duration::from_mins(1));
        progress.note_blockers(due);
        let Some(BlockageNews::Begun(pods)) = progress.news(due) else { panic!("no news") };
        assert_eq!((pods.len(), pods[0].until), (1, None));
        assert_eq!((progress.news(due), progress.news_due()), (None, None));
    }
}
