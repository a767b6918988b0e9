//! Events about a blocked drain: one when a blocker has kept a pod for a minute, or for half of the window if that is less, and
//! another when all blocked pods are released. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use spillway_notice::continued::PublishedBlockage;
use tokio::time::Instant;

use super::deadline::Window;
use super::plan::{PodName, PodUid};
use super::pod::blocker::Blocker;
use super::pod::{PodState, Tracked};

/// Time after which a blockage is published. Most blocked pods wait only for seconds, until another one is Ready.
const LONG: Duration = Duration::from_mins(1);

/// News about a blockage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockageNews {
    /// A pod has been blocked for long; all pods that are blocked now.
    Begun(Vec<BlockedPod>),
    /// Each of the published pods is leaving or gone.
    Over(Vec<ReleasedPod>),
}

/// A pod that is no longer blocked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleasedPod {
    pub uid: PodUid,
    pub name: PodName,
}

/// A blocked pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockedPod {
    pub uid: PodUid,
    pub name: PodName,
    pub by: Blocker,
    /// Time at which its annotation ends or it is forced; absent: never.
    pub until: Option<Instant>,
    /// The pod's own grace period.
    pub grace: Duration,
    /// Remedy for the blockage.
    pub advice: Option<String>,
}

/// Blockage of a drain.
#[derive(Debug)]
pub(super) struct Blockage {
    /// Begin of each pod's blockage.
    since: BTreeMap<PodUid, Instant>,
    stage: BlockageStage,
}

#[derive(Debug)]
enum BlockageStage {
    Short,
    /// The pods of the published event; in a later invocation all pods that had to leave at its begin.
    Published(BTreeSet<PodUid>),
    /// Both events have been published. A drain has no more.
    Over,
}

impl Blockage {
    /// Blockage of a drain with these pods, after the events of earlier invocations.
    pub(super) fn new(published: Option<PublishedBlockage>, pods: &BTreeMap<PodUid, Tracked>) -> Self {
        let stage = match published {
            None => BlockageStage::Short,
            Some(PublishedBlockage::Begun) => BlockageStage::Published(
                pods.iter().filter(|(_, pod)| has_to_leave(pod)).map(|(uid, _)| uid.clone()).collect(),
            ),
            Some(PublishedBlockage::Over) => BlockageStage::Over,
        };
        Self { since: BTreeMap::new(), stage }
    }

    /// Last published event, for a later invocation.
    pub(super) fn published(&self) -> Option<PublishedBlockage> {
        match self.stage {
            BlockageStage::Short => None,
            BlockageStage::Published(_) => Some(PublishedBlockage::Begun),
            BlockageStage::Over => Some(PublishedBlockage::Over),
        }
    }

    /// News about the pods as they are now. They count as published.
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
                if known().any(|(_, pod)| has_to_leave(pod)) {
                    return None;
                }
                let over = known().map(|(uid, pod)| ReleasedPod { uid: uid.clone(), name: pod.name.clone() }).collect();
                self.stage = BlockageStage::Over;
                Some(BlockageNews::Over(over))
            }
            BlockageStage::Over => None,
        }
    }

    /// Time at which a pod will have been blocked for long.
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

fn has_to_leave(pod: &Tracked) -> bool {
    !pod.is_returned && matches!(pod.state, PodState::Waits { .. } | PodState::Requested)
}

/// Returns `true` if the pod is blocked, also during another attempt to evict it.
fn is_blocked(pod: &Tracked) -> bool {
    has_to_leave(pod) && pod.blocked.by().is_some()
}

fn blocked(uid: &PodUid, pod: &Tracked, window: Window) -> Option<BlockedPod> {
    let by = pod.blocked.by().filter(|_| has_to_leave(pod))?.clone();
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

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn uid(name: &str) -> PodUid {
        PodUid(format!("uid-of-{name}"))
    }

    /// Waiting pods without a blocker.
    fn pods<const N: usize>(names: [&str; N], now: Instant) -> BTreeMap<PodUid, Tracked> {
        names.map(|name| (uid(name), Tracked::new(name_of(name), Tier::Ordinary, GRACE, now))).into()
    }

    fn name_of(name: &str) -> PodName {
        PodName { namespace: "shop".to_owned(), name: name.to_owned() }
    }

    fn budget(name: &str) -> Blocker {
        Blocker::Budget(BudgetName { namespace: "shop".to_owned(), name: name.to_owned() })
    }

    fn names(news: Option<BlockageNews>) -> Option<Vec<String>> {
        Some(match news? {
            BlockageNews::Begun(pods) => {
                pods.into_iter().map(|pod| format!("{} by {}", pod.name.name, pod.by)).collect()
            }
            BlockageNews::Over(pods) => pods.into_iter().map(|pod| format!("{} over", pod.name.name)).collect(),
        })
    }

    #[test]
    fn blockage_of_a_minute_and_its_end_are_published_once() {
        let start = Instant::now();
        let (mut pods, window) = (pods(["db-0", "web-0", "free"], start), hard(start, 600));
        let mut blockage = Blockage::new(None, &pods);
        pods.get_mut(&uid("db-0")).unwrap().block(budget("db"), None);
        assert_eq!(blockage.news(&pods, window, start), None);
        pods.get_mut(&uid("web-0")).unwrap().block(budget("web"), None);
        assert_eq!(blockage.news(&pods, window, start + secs(59)), None);
        assert_eq!((blockage.due(window), blockage.published()), (Some(start + secs(60)), None));

        let news = blockage.news(&pods, window, start + secs(60)).unwrap();
        let BlockageNews::Begun(blocked) = &news else { panic!("{news:?}") };
        assert_eq!(blocked[0].until, window.forced_from(GRACE));
        assert_eq!(names(Some(news)).unwrap(), ["db-0 by PodDisruptionBudget db", "web-0 by PodDisruptionBudget web"]);
        assert_eq!((blockage.due(window), blockage.published()), (None, Some(PublishedBlockage::Begun)));

        pods.get_mut(&uid("db-0")).unwrap().settle(PodState::Leaving { by: start + secs(90) });
        assert_eq!(blockage.news(&pods, window, start + secs(70)), None, "web-0 is still blocked");
        pods.get_mut(&uid("web-0")).unwrap().settle(PodState::Gone { at: start + secs(71) });
        assert_eq!(names(blockage.news(&pods, window, start + secs(71))).unwrap(), ["db-0 over", "web-0 over"]);
        assert_eq!(blockage.published(), Some(PublishedBlockage::Over));

        pods.get_mut(&uid("free")).unwrap().block(budget("free"), None);
        assert_eq!(blockage.news(&pods, window, start + secs(80)), None);
        assert_eq!(blockage.news(&pods, window, start + secs(500)), None, "one begin and one end");
    }

    #[test]
    fn half_of_a_short_window_counts_as_long() {
        let start = Instant::now();
        let (mut pods, window) = (pods(["db-0"], start), hard(start, 50));
        pods.get_mut(&uid("db-0")).unwrap().block(budget("db"), None);
        let mut blockage = Blockage::new(None, &pods);
        assert_eq!(blockage.news(&pods, window, start), None);
        assert_eq!(blockage.news(&pods, window, start + secs(24)), None);
        assert!(blockage.news(&pods, window, start + secs(25)).is_some());
    }

    #[test]
    fn released_pod_counts_from_its_next_refusal() {
        let start = Instant::now();
        let (mut pods, window) = (pods(["db-0"], start), hard(start, 600));
        let mut blockage = Blockage::new(None, &pods);
        let mut at = |seconds, change: &dyn Fn(&mut Tracked)| {
            change(pods.get_mut(&uid("db-0")).unwrap());
            blockage.news(&pods, window, start + secs(seconds)).is_some()
        };
        assert!(!at(0, &|pod| drop(pod.block(budget("db"), None))));
        assert!(!at(40, &|pod| pod.release(|_| true, start)));
        assert!(!at(41, &|pod| drop(pod.block(budget("db"), None))));
        assert!(!at(100, &|_| {}));
        assert!(at(101, &|_| {}));
    }

    #[test]
    fn pod_is_blocked_while_its_eviction_is_retried() {
        let start = Instant::now();
        let (mut pods, window) = (pods(["db-0"], start), hard(start, 600));
        let mut blockage = Blockage::new(None, &pods);
        pods.get_mut(&uid("db-0")).unwrap().block(budget("db"), None);
        assert_eq!(blockage.news(&pods, window, start), None);
        pods.get_mut(&uid("db-0")).unwrap().state = PodState::Requested;
        assert_eq!(blockage.news(&pods, window, start + secs(30)), None);
        assert!(blockage.news(&pods, window, start + secs(60)).is_some());
    }

    #[test]
    fn later_invocation_publishes_only_the_end_once() {
        let start = Instant::now();
        let (mut pods, window) = (pods(["db-0", "web-0"], start), hard(start, 600));
        pods.get_mut(&uid("web-0")).unwrap().settle(PodState::Leaving { by: start });
        let mut blockage = Blockage::new(Some(PublishedBlockage::Begun), &pods);
        assert_eq!(blockage.news(&pods, window, start), None, "db-0 has not been evicted yet");
        pods.get_mut(&uid("db-0")).unwrap().block(budget("db"), None);
        assert_eq!(blockage.news(&pods, window, start + secs(300)), None);
        pods.get_mut(&uid("db-0")).unwrap().settle(PodState::Leaving { by: start });
        assert_eq!(names(blockage.news(&pods, window, start + secs(301))).unwrap(), ["db-0 over"]);
        let mut later = Blockage::new(blockage.published(), &pods);
        pods.get_mut(&uid("db-0")).unwrap().block(budget("db"), None);
        assert_eq!(later.news(&pods, window, start + secs(400)), None);
        assert_eq!(later.news(&pods, window, start + secs(500)), None, "one begin and one end");
    }

    #[test]
    fn unblocked_pod_is_not_published() {
        let start = Instant::now();
        let (pods, window) = (pods(["db-0"], start), hard(start, 600));
        let mut blockage = Blockage::new(None, &pods);
        assert_eq!(blockage.news(&pods, window, start + secs(599)), None);
        assert_eq!(blockage.due(window), None);
    }
}
