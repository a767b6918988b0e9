//! Decides when to publish events about pods whose eviction is blocked for long. Pure.
//!
//! The first event is due when a pod has been blocked for a minute, or for half of the drain's maximum duration if that is
//! shorter. The second and last event is due when all pods of the first event are leaving or gone.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use spillway_notice::continued::PublishedBlockage;
use tokio::time::Instant;

use super::deadline::Window;
use super::plan::{PodName, PodUid};
use super::pod::blocker::Blocker;
use super::pod::{PodState, Tracked};

/// Time after which the first event about a blocked pod is due. Most pods are blocked only for seconds.
const LONG: Duration = Duration::from_mins(1);

/// Event to publish about blocked pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockageNews {
    /// First event: one pod has been blocked for long. Holds all pods that are blocked now.
    Begun(Vec<BlockedPod>),
    /// Second event: all pods of the first event are leaving or gone. Holds these pods.
    Over(Vec<ReleasedPod>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleasedPod {
    pub uid: PodUid,
    pub name: PodName,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockedPod {
    pub uid: PodUid,
    pub name: PodName,
    pub by: Blocker,
    /// Time at which the blocking do-not-disrupt annotation ends. For any other blocker, the time at which the pod is deleted
    /// despite the blocker. If `None`, the pod may stay.
    pub until: Option<Instant>,
    pub grace: Duration,
    pub advice: Option<String>,
}

#[derive(Debug)]
pub(super) struct Blockage {
    /// Blocked pods, each with the time since which the pod has been blocked.
    since: BTreeMap<PodUid, Instant>,
    stage: BlockageStage,
}

#[derive(Debug)]
enum BlockageStage {
    /// No event has been published, because no pod has been blocked long enough.
    Short,
    /// The first event has been published. Holds the pods that must leave before the second event.
    Published(BTreeSet<PodUid>),
    /// The first and the second event have been published.
    Over,
}

impl Blockage {
    /// Creates the state at the start of an invocation. `published` is the last event that an earlier invocation
    /// published.
    pub(super) fn new(published: Option<PublishedBlockage>, pods: &BTreeMap<PodUid, Tracked>) -> Self {
        let stage = match published {
            None => BlockageStage::Short,
            // A later invocation does not know the list of the first event. It uses all pods that still have to leave.
            Some(PublishedBlockage::Begun) => BlockageStage::Published(
                pods.iter().filter(|(_, pod)| is_not_leaving_yet(pod)).map(|(uid, _)| uid.clone()).collect(),
            ),
            Some(PublishedBlockage::Over) => BlockageStage::Over,
        };
        Self { since: BTreeMap::new(), stage }
    }

    /// Returns the last published event. The next invocation receives this event.
    pub(super) fn published(&self) -> Option<PublishedBlockage> {
        match self.stage {
            BlockageStage::Short => None,
            BlockageStage::Published(_) => Some(PublishedBlockage::Begun),
            BlockageStage::Over => Some(PublishedBlockage::Over),
        }
    }

    /// Returns the event to publish now, if one is due. A returned event counts as published.
    pub(super) fn news(
        &mut self,
        pods: &BTreeMap<PodUid, Tracked>,
        window: Window,
        now: Instant,
    ) -> Option<BlockageNews> {
        match &self.stage {
            BlockageStage::Short => {
                self.observe(pods, now);
                if self.due(window)? > now {
                    return None;
                }
                let blocked = pods.iter().filter_map(|(uid, pod)| blocked(uid, pod, window)).collect();
                self.stage = BlockageStage::Published(std::mem::take(&mut self.since).into_keys().collect());
                Some(BlockageNews::Begun(blocked))
            }
            BlockageStage::Published(uids) => {
                let known = || uids.iter().filter_map(|uid| Some((uid, pods.get(uid)?)));
                if known().any(|(_, pod)| is_not_leaving_yet(pod)) {
                    return None;
                }
                let over = known().map(|(uid, pod)| ReleasedPod { uid: uid.clone(), name: pod.name.clone() }).collect();
                self.stage = BlockageStage::Over;
                Some(BlockageNews::Over(over))
            }
            BlockageStage::Over => None,
        }
    }

    /// Returns the time at which the first event is due, if the pods stay blocked. `None`: no pod is blocked, or the
    /// event has been published.
    pub(super) fn due(&self, window: Window) -> Option<Instant> {
        let long = LONG.min(window.end.saturating_duration_since(window.start) / 2);
        self.since.values().min().map(|since| *since + long)
    }

    fn observe(&mut self, pods: &BTreeMap<PodUid, Tracked>, now: Instant) {
        for (uid, pod) in pods {
            if !is_blocked(pod) {
                self.since.remove(uid);
            } else if !self.since.contains_key(uid) {
                self.since.insert(uid.clone(), now);
            }
        }
    }
}

fn is_not_leaving_yet(pod: &Tracked) -> bool {
    !pod.is_returned && matches!(pod.state, PodState::Waits { .. } | PodState::Requested)
}

/// Returns `true` if the pod is blocked. A pod stays blocked by a PDB while its eviction is tried again.
fn is_blocked(pod: &Tracked) -> bool {
    is_not_leaving_yet(pod) && pod.blocked.by().is_some()
}

fn blocked(uid: &PodUid, pod: &Tracked, window: Window) -> Option<BlockedPod> {
    let by = pod.blocked.by().filter(|_| is_not_leaving_yet(pod))?.clone();
    let until = pod.blocked_until(window);
    Some(BlockedPod { uid: uid.clone(), name: pod.name.clone(), by, until, grace: pod.grace, advice: pod.advice() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drain::deadline::tests::hard;
    use crate::drain::pod::blocker::BudgetName;
    use crate::drain::tier::Tier;

    const GRACE: Duration = Duration::from_secs(30);

    fn uid(name: &str) -> PodUid {
        PodUid(format!("uid-of-{name}"))
    }

    /// Pods of a drain, and their blockage.
    struct Story {
        pods: BTreeMap<PodUid, Tracked>,
        window: Window,
        blockage: Blockage,
    }

    impl Story {
        /// Waiting pods without a blocker.
        fn new<const N: usize>(names: [&str; N], window_s: u64) -> Self {
            let start = Instant::now();
            let pod = |name: &str| {
                let name = PodName { namespace: "shop".to_owned(), name: name.to_owned() };
                Tracked::new(name, Tier::Ordinary, GRACE, start)
            };
            let pods = names.map(|name| (uid(name), pod(name))).into();
            Self { blockage: Blockage::new(None, &pods), pods, window: hard(start, window_s) }
        }

        fn at(&self, seconds: u64) -> Instant {
            self.window.start + Duration::from_secs(seconds)
        }

        fn pod(&mut self, name: &str) -> &mut Tracked {
            self.pods.get_mut(&uid(name)).unwrap()
        }

        fn block(&mut self, name: &str) {
            let budget = BudgetName { namespace: "shop".to_owned(), name: format!("of-{name}") };
            self.pod(name).block(Blocker::Budget(budget), None);
        }

        fn leave(&mut self, name: &str) {
            let by = self.window.start;
            self.pod(name).settle(PodState::Leaving { by });
        }

        /// Published sentences at that second.
        fn news(&mut self, seconds: u64) -> Vec<String> {
            let now = self.at(seconds);
            match self.blockage.news(&self.pods, self.window, now) {
                Some(BlockageNews::Begun(pods)) => {
                    assert!(pods.iter().all(|pod| pod.until == self.window.forced_from(GRACE)), "{pods:?}");
                    pods.into_iter().map(|pod| format!("{} by {}", pod.name.name, pod.by)).collect()
                }
                Some(BlockageNews::Over(pods)) => {
                    pods.into_iter().map(|pod| format!("{} over", pod.name.name)).collect()
                }
                None => Vec::new(),
            }
        }

        fn is_quiet(&mut self, seconds: u64) -> bool {
            self.news(seconds).is_empty()
        }
    }

    #[test]
    fn blockage_of_a_minute_and_its_end_are_published_once() {
        let mut story = Story::new(["db-0", "free", "web-0"], 600);
        assert!(story.is_quiet(0) && story.blockage.due(story.window).is_none(), "not blocked");
        story.block("db-0");
        assert!(story.is_quiet(0));
        story.block("web-0");
        assert!(story.is_quiet(59));
        assert_eq!((story.blockage.due(story.window), story.blockage.published()), (Some(story.at(60)), None));
        assert_eq!(story.news(60), ["db-0 by PodDisruptionBudget of-db-0", "web-0 by PodDisruptionBudget of-web-0"]);
        let begun = Some(PublishedBlockage::Begun);
        assert_eq!((story.blockage.due(story.window), story.blockage.published()), (None, begun));

        story.leave("db-0");
        assert!(story.is_quiet(70), "web-0 is still blocked");
        let at = story.at(71);
        story.pod("web-0").settle(PodState::Gone { at });
        assert_eq!(story.news(71), ["db-0 over", "web-0 over"]);
        assert_eq!(story.blockage.published(), Some(PublishedBlockage::Over));

        story.block("free");
        assert!(story.is_quiet(80) && story.is_quiet(500), "one begin and one end");
    }

    #[test]
    fn half_of_a_short_window_counts_as_long() {
        let mut story = Story::new(["db-0"], 50);
        story.block("db-0");
        assert!(story.is_quiet(0) && story.is_quiet(24) && !story.is_quiet(25));
    }

    #[test]
    fn released_pod_counts_from_its_next_refusal() {
        let mut story = Story::new(["db-0"], 600);
        story.block("db-0");
        assert!(story.is_quiet(0));
        let now = story.at(0);
        story.pod("db-0").release(|_| true, now);
        assert!(story.is_quiet(40));
        story.block("db-0");
        assert!(story.is_quiet(41) && story.is_quiet(100) && !story.is_quiet(101));
    }

    #[test]
    fn later_invocation_publishes_only_the_end_once() {
        let mut story = Story::new(["db-0", "web-0"], 600);
        story.leave("web-0");
        story.blockage = Blockage::new(Some(PublishedBlockage::Begun), &story.pods);
        assert!(story.is_quiet(0), "db-0 has not been evicted yet");
        story.block("db-0");
        assert!(story.is_quiet(300));
        story.leave("db-0");
        assert_eq!(story.news(301), ["db-0 over"]);
        story.blockage = Blockage::new(story.blockage.published(), &story.pods);
        story.block("db-0");
        assert!(story.is_quiet(400) && story.is_quiet(500), "one begin and one end");
    }
}
