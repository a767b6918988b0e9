//! How far a drain has come, in a sentence for the node's condition. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use super::plan::PodUid;
use super::pod::{PodState, Tracked};

/// How often the sentence is renewed while it changes: as often as a kubelet reports its node's status.
const EVERY: Duration = Duration::from_secs(10);

/// When the next sentence is due.
#[derive(Debug)]
pub(super) struct ProgressMessage {
    due: Instant,
    last: String,
}

impl ProgressMessage {
    /// The first is due at once.
    pub(super) fn new(now: Instant) -> Self {
        Self { due: now, last: String::new() }
    }

    /// The sentence, if it is due and has changed.
    pub(super) fn news(&mut self, pods: &BTreeMap<PodUid, Tracked>, now: Instant) -> Option<String> {
        if self.due > now {
            return None;
        }
        self.due = now + EVERY;
        let message = message(pods);
        if message == self.last {
            return None;
        }
        self.last.clone_from(&message);
        Some(message)
    }

    pub(super) fn due(&self) -> Instant {
        self.due
    }
}

/// How many of the pods that have to leave have gone, and what blocks the first that is blocked.
pub fn message(pods: &BTreeMap<PodUid, Tracked>) -> String {
    let leave = || pods.values().filter(|pod| !pod.is_returned && !matches!(pod.state, PodState::Stays(_)));
    let gone = leave().filter(|pod| matches!(pod.state, PodState::Gone { .. })).count();
    let blocked = || leave().filter(|pod| pod.waits()).filter_map(|pod| Some((&pod.name, pod.blocked.by()?)));
    let all = leave().count();
    let noun = if all == 1 { "pod has" } else { "pods have" };
    let counts = format!("{gone} of {all} {noun} gone");
    match (blocked().next(), blocked().count().saturating_sub(1)) {
        (None, _) => counts,
        (Some((pod, by)), 0) => format!("{counts}; {pod} is blocked by {by}"),
        (Some((pod, by)), more) => format!("{counts}; {pod} is blocked by {by}, and {more} more are blocked"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drain::plan::{PodName, Stays};
    use crate::drain::pod::blocker::{Blocked, Blocker, BudgetName};
    use crate::drain::tier::Tier;

    fn pod(name: &str, state: PodState, budget: Option<&str>) -> (PodUid, Tracked) {
        let named = PodName { namespace: "shop".to_owned(), name: name.to_owned() };
        let blocked = budget.map_or(Blocked::Never, |budget| {
            Blocked::By(Blocker::Budget(BudgetName { namespace: "shop".to_owned(), name: budget.to_owned() }))
        });
        let tracked = Tracked::new(named, Tier::Ordinary, Duration::ZERO, Instant::now());
        (PodUid(name.to_owned()), Tracked { state, blocked, ..tracked })
    }

    fn waits() -> PodState {
        PodState::Waits { due: None }
    }

    #[tokio::test(start_paused = true)]
    async fn it_counts_the_pods_that_have_to_leave_and_names_what_blocks_the_first() {
        let gone = || PodState::Gone { at: Instant::now() };
        let agent = || pod("agent", PodState::Stays(Stays::DaemonSet), None);
        let of = |pods: Vec<(PodUid, Tracked)>| message(&pods.into_iter().collect());
        assert_eq!(of(vec![pod("a", gone(), None), agent()]), "1 of 1 pod has gone");
        assert_eq!(of(vec![pod("a", gone(), Some("web")), pod("b", waits(), None)]), "1 of 2 pods have gone");
        let blocked = "0 of 2 pods have gone; shop/db-0 is blocked by PodDisruptionBudget db";
        assert_eq!(of(vec![pod("db-0", waits(), Some("db")), pod("web", waits(), None)]), blocked);
        let more = format!("{blocked}, and 1 more are blocked");
        assert_eq!(of(vec![pod("db-0", waits(), Some("db")), pod("db-1", waits(), Some("db"))]), more);
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_renewed_when_it_has_changed_and_not_more_often_than_a_kubelet_reports() {
        let began = Instant::now();
        let mut progress = ProgressMessage::new(began);
        let before = [pod("a", waits(), None)].into();
        let after = [pod("a", PodState::Gone { at: began }, None)].into();
        assert!(progress.news(&before, began).is_some());
        assert_eq!(progress.news(&after, began), None, "it has just been renewed");
        let due = progress.due();
        assert_eq!((due - began).as_secs(), 10);
        assert_eq!(progress.news(&after, due).as_deref(), Some("1 of 1 pod has gone"));
        assert_eq!(progress.news(&after, progress.due()), None, "it has not changed");
    }
}
