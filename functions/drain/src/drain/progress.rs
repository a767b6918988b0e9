//! Where a drain stands: which pods still have to leave, what is to be asked next, and what
//! became of each. Pure: answers and changes in, requests out; the clock is handed in.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use tokio::time::Instant;

use super::deadline::{Grace, Window};
use super::evict::{Answer, Way};
use super::plan::{Place, Planned, PodName, PodUid, Stays, Tier, plan};
use super::watch::Change;

/// How many evictions are under way at once: nearly all of the 100 streams that an API server
/// allows on an HTTP/2 connection (kubernetes, `secure_serving.go`), with room for the watch.
pub(crate) const EVICTIONS_AT_ONCE: usize = 90;
/// When a pod that its budget holds is asked for again.
const HELD_RETRY: Duration = Duration::from_secs(1);
/// When an eviction that failed is tried again.
const FAILED_RETRY: Duration = Duration::from_millis(500);
/// A missing right may be granted meanwhile, but not at once.
const FORBIDDEN_RETRY: Duration = Duration::from_secs(5);

/// A pod to be told to leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) uid: PodUid,
    pub(crate) name: PodName,
    pub(crate) way: Way,
    pub(crate) grace: Grace,
}

/// A change of state that a person would want to see in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum News {
    /// The pod has been told to leave.
    Evicted(PodName),
    /// The pod has been deleted past what held it.
    Forced(PodName),
    /// The pod has gone.
    Gone(PodName),
    /// A budget holds the pod; told the first time only.
    Held(PodName, String),
    /// The eviction failed; told the first time only.
    Failed(PodName, String),
}

/// One pod in the drain.
#[derive(Debug, Clone)]
pub(crate) struct Tracked {
    pub(crate) name: PodName,
    pub(crate) grace: Duration,
    /// What it was last told.
    pub(crate) told: Option<(Way, Grace)>,
    pub(crate) evictions: u32,
    pub(crate) refusals: u32,
    /// Whether the last answer was a budget's refusal, which a deletion would pass.
    pub(crate) held: bool,
    /// The budget that refused it last.
    pub(crate) budget: Option<String>,
    /// What was wrong with the last answer.
    pub(crate) trouble: Option<String>,
    pub(crate) state: State,
    pub(crate) gone_at: Option<Instant>,
}

/// What is to happen to a pod next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// It is left alone.
    Stays(Stays),
    /// It is to be evicted, not before that time, once its tier has begun.
    Due(Tier, Instant),
    /// An eviction is under way.
    Asked(Tier),
    /// It is shutting down.
    Leaving,
    /// It has gone.
    Gone,
}

impl Tracked {
    /// By eviction, until what holds the pod would cost it its clean shutdown.
    fn way(&self, window: Window, now: Instant) -> Way {
        let forced = window.forced_from(self.grace).is_some_and(|from| from <= now);
        if forced && self.held { Way::Delete } else { Way::Evict }
    }

    /// When it is told again: after a pause, but a held pod in time to be forced.
    fn again(&self, pause: Duration, window: Window, now: Instant) -> Instant {
        let forced_from = window.forced_from(self.grace).filter(|_| self.held);
        forced_from.map_or(now + pause, |from| from.clamp(now, now + pause))
    }
}

/// All pods of the node.
#[derive(Debug)]
pub(crate) struct Progress {
    window: Window,
    pods: BTreeMap<PodUid, Tracked>,
    in_flight: usize,
    /// News since they were last taken.
    news: Vec<News>,
}

impl Progress {
    /// A drain that begins with these pods.
    pub(crate) fn new(pods: &[Pod], window: Window, now: Instant) -> Self {
        let mut progress = Self { window, pods: BTreeMap::new(), in_flight: 0, news: Vec::new() };
        for pod in pods {
            progress.see(pod, now);
        }
        progress
    }

    /// Whether nothing is left that has to leave.
    pub(crate) fn is_empty(&self) -> bool {
        self.pods.values().all(|pod| matches!(pod.state, State::Stays(_) | State::Gone))
    }

    /// The pods, by UID.
    pub(crate) fn into_pods(self) -> BTreeMap<PodUid, Tracked> {
        self.pods
    }

    /// What has happened since the last call.
    pub(crate) fn take_news(&mut self) -> Vec<News> {
        std::mem::take(&mut self.news)
    }

    /// The evictions to ask for now; each has to be [`answered`](Self::answered).
    pub(crate) fn requests(&mut self, now: Instant) -> Vec<Request> {
        let tier = self.tier(now);
        let window = self.window;
        let mut requests = Vec::new();
        for (uid, pod) in &mut self.pods {
            if self.in_flight == EVICTIONS_AT_ONCE {
                break;
            }
            if let State::Due(of, at) = pod.state
                && of <= tier
                && at <= now
            {
                let way = pod.way(window, now);
                let grace = window.grace(pod.grace, now);
                pod.state = State::Asked(of);
                pod.told = Some((way, grace));
                pod.held = false;
                pod.evictions += u32::from(way == Way::Evict);
                self.in_flight += 1;
                requests.push(Request { uid: uid.clone(), name: pod.name.clone(), way, grace });
            }
        }
        requests
    }

    /// When [`requests`](Self::requests) may have something new by the mere passing of time.
    pub(crate) fn next_due(&self, now: Instant) -> Option<Instant> {
        if self.in_flight == EVICTIONS_AT_ONCE {
            return None;
        }
        let tier = self.tier(now);
        let due = self.pods.values().filter_map(|pod| match pod.state {
            State::Due(of, at) if of <= tier => Some(at),
            State::Due(..) => self.critical_tier_at(),
            _ => None,
        });
        due.min()
    }

    /// Critical pods begin when the others have gone, or when they must to be in time.
    fn tier(&self, now: Instant) -> Tier {
        let ordinary = self.pods.values().any(|pod| match pod.state {
            State::Due(tier, _) | State::Asked(tier) => tier == Tier::Ordinary,
            State::Leaving => true,
            State::Stays(_) | State::Gone => false,
        });
        let must = self.critical_tier_at().is_some_and(|at| at <= now);
        if ordinary && !must { Tier::Ordinary } else { Tier::Critical }
    }

    /// The last safe moment of the critical pod that asks for the longest grace.
    fn critical_tier_at(&self) -> Option<Instant> {
        let critical = self.pods.values().filter(|pod| matches!(pod.state, State::Due(Tier::Critical, _)));
        critical.map(|pod| pod.grace).max().and_then(|grace| self.window.last_safe_moment(grace))
    }

    /// Takes the answer to a request.
    pub(crate) fn answered(&mut self, uid: &PodUid, answer: Answer, now: Instant) {
        self.in_flight -= 1;
        let Some(pod) = self.pods.get_mut(uid) else { return };
        // The watch may have told of the pod's end before its eviction was answered.
        let State::Asked(tier) = pod.state else { return };
        let window = self.window;
        let mut trouble = |message: String, retry: Duration, pod: &mut Tracked| {
            if pod.trouble.as_ref() != Some(&message) {
                self.news.push(News::Failed(pod.name.clone(), message.clone()));
            }
            pod.trouble = Some(message);
            pod.state = State::Due(tier, pod.again(retry, window, now));
        };
        match answer {
            Answer::Leaving => {
                pod.state = State::Leaving;
                self.news.push(match pod.told {
                    Some((Way::Delete, _)) => News::Forced(pod.name.clone()),
                    _ => News::Evicted(pod.name.clone()),
                });
            }
            Answer::Gone => self.gone(uid, now),
            Answer::HeldBy { budget } => {
                pod.refusals += 1;
                if pod.budget.as_ref() != Some(&budget) {
                    self.news.push(News::Held(pod.name.clone(), budget.clone()));
                }
                pod.budget = Some(budget);
                pod.held = true;
                pod.state = State::Due(tier, pod.again(HELD_RETRY, window, now));
            }
            Answer::HeldBySeveral => {
                pod.refusals += 1;
                pod.held = true;
                trouble("more than one PodDisruptionBudget covers it".to_owned(), FORBIDDEN_RETRY, pod);
            }
            Answer::NamespaceTerminating => trouble("its namespace is being deleted".to_owned(), HELD_RETRY, pod),
            Answer::Throttled { retry_after } => {
                trouble("the API server is busy".to_owned(), retry_after.unwrap_or(FAILED_RETRY), pod);
            }
            Answer::Forbidden { message } => trouble(message, FORBIDDEN_RETRY, pod),
            Answer::Failed { message } => trouble(message, FAILED_RETRY, pod),
        }
    }

    /// Takes what the watch saw.
    pub(crate) fn changed(&mut self, change: Change, now: Instant) {
        match change {
            Change::Seen(pod) => self.see(&pod, now),
            Change::Gone(uid) => self.gone(&uid, now),
            Change::OnlyThese(pods) => {
                let there: Vec<PodUid> = pods.iter().filter_map(plan).map(|planned| planned.uid).collect();
                let absent: Vec<PodUid> = self.pods.keys().filter(|uid| !there.contains(uid)).cloned().collect();
                for uid in absent {
                    self.gone(&uid, now);
                }
                for pod in &pods {
                    self.see(pod, now);
                }
            }
            Change::Interrupted(_) => {}
        }
    }

    /// A pod that is new gets its place; one that is known may have begun to leave by itself.
    fn see(&mut self, pod: &Pod, now: Instant) {
        let Some(Planned { uid, name, grace, place }) = plan(pod) else { return };
        let state = match place {
            Place::Stays(why) => State::Stays(why),
            Place::Leaves(tier) => State::Due(tier, now),
            Place::Leaving => State::Leaving,
        };
        match self.pods.get_mut(&uid) {
            Some(known) if place == Place::Leaving && matches!(known.state, State::Due(..)) => known.state = state,
            Some(_) => {}
            None => {
                let pod = Tracked {
                    name,
                    grace,
                    told: None,
                    evictions: 0,
                    refusals: 0,
                    held: false,
                    budget: None,
                    trouble: None,
                    state,
                    gone_at: None,
                };
                self.pods.insert(uid, pod);
            }
        }
    }

    fn gone(&mut self, uid: &PodUid, now: Instant) {
        if let Some(pod) = self.pods.get_mut(uid)
            && !matches!(pod.state, State::Gone | State::Stays(_))
        {
            pod.state = State::Gone;
            pod.gone_at = Some(now);
            self.news.push(News::Gone(pod.name.clone()));
        }
    }
}

#[cfg(test)]
mod tests;
