//! Pods that are placed on the cordoned node: they tolerate the cordon, or name the node. Pure.
//!
//! Evicted, such a pod comes back for ever. Its eviction has a pause, which doubles for the node. A pod that tolerates the cordon
//! is *returned*: the drain does not wait for it. Any other pod is waited for: the scheduler may have placed it.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use crate::kube::pod::Pod;

/// First pause: kubectl's own pause after a refusal.
const PAUSE: Duration = Duration::from_secs(5);
/// Longest time from the claim to the creation of a pod that the scheduler may still bind: its watch of nodes is behind by a second
/// or so.
const SCHEDULER_LAG: SignedDuration = SignedDuration::from_secs(5);
/// Largest difference between the clocks of the API server and of the function. The API server's times are whole seconds.
const CLOCK_SKEW: SignedDuration = SignedDuration::from_secs(5);
/// Most rounds of evictions of returned pods. With its eviction before it returned, each leaves three times at most.
const ROUNDS: u32 = 2;
/// Most such pods that are tracked. If a kubelet rejects pods that name their node, a controller makes new ones for ever.
const TRACKED: usize = 50;

/// Kind of a pod that was not on the node before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// Placed before the cordon, or by the scheduler's backlog.
    BeforeCordon,
    /// Names the node: evicted at that time.
    AfterCordon { due: Instant },
    /// Tolerates the cordon: evicted at that time, if at all, and not waited for.
    Returned { due: Option<Instant> },
    /// Beyond the bound of tracked pods.
    Surplus,
}

/// The pods that were placed on the cordoned node so far.
#[derive(Debug)]
pub struct Returns {
    cordoned: Timestamp,
    tracked: usize,
    rounds: u32,
    /// Time of the last round of evictions.
    round: Option<Instant>,
    /// Time when the last pod of the scheduler's backlog came.
    pub last_from_backlog: Option<Instant>,
}

impl Returns {
    /// Returns to a node that was cordoned then, by whichever invocation.
    pub fn since(cordoned: Timestamp) -> Self {
        Self { cordoned, tracked: 0, rounds: 0, round: None, last_from_backlog: None }
    }

    /// Returns to a node that could not be cordoned: the scheduler has no backlog for it, but places pods on it for ever.
    pub fn to_uncordoned(claimed: Timestamp) -> Self {
        Self::since(claimed.saturating_sub(SCHEDULER_LAG + CLOCK_SKEW).unwrap_or(Timestamp::MIN))
    }

    pub fn cordoned_again(&mut self, at: Timestamp) {
        self.cordoned = at;
    }

    /// Judges a pod of the drain's first list. A returned pod has had its rounds in an earlier invocation.
    pub fn listed(&mut self, pod: &Pod, now: Instant) -> Arrival {
        match self.judge(pod, SCHEDULER_LAG + CLOCK_SKEW, now) {
            Arrival::Returned { .. } => Arrival::Returned { due: None },
            arrival => arrival,
        }
    }

    /// Judges a pod that came after the list.
    pub fn came(&mut self, pod: &Pod, now: Instant) -> Arrival {
        let tolerates = pod.spec.tolerates_cordon;
        let arrival = self.judge(pod, if tolerates { -CLOCK_SKEW } else { SCHEDULER_LAG + CLOCK_SKEW }, now);
        if arrival == Arrival::BeforeCordon {
            self.last_from_backlog = Some(now);
        }
        arrival
    }

    fn judge(&mut self, pod: &Pod, later_than_cordon: SignedDuration, now: Instant) -> Arrival {
        let from = self.cordoned.saturating_add(later_than_cordon).unwrap_or(Timestamp::MAX);
        if pod.metadata.creation_timestamp.as_ref().is_none_or(|created| created.0 < from) {
            return Arrival::BeforeCordon;
        }
        if self.tracked == TRACKED {
            return Arrival::Surplus;
        }
        self.tracked += 1;
        let next = self.round.filter(|round| now < *round);
        if !pod.spec.tolerates_cordon {
            Arrival::AfterCordon { due: next.unwrap_or_else(|| self.begin_round(now)) }
        } else if next.is_none() && self.rounds >= ROUNDS {
            Arrival::Returned { due: None }
        } else {
            Arrival::Returned { due: Some(next.unwrap_or_else(|| self.begin_round(now))) }
        }
    }

    fn begin_round(&mut self, now: Instant) -> Instant {
        let round = now + PAUSE * 2_u32.saturating_pow(self.rounds.min(10));
        (self.rounds, self.round) = (self.rounds + 1, Some(round));
        round
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const CORDONED: &str = "2026-11-21T03:12:00Z";

    fn returns() -> Returns {
        Returns::since(CORDONED.parse().unwrap())
    }

    fn pod(created_after_s: i64, tolerates: bool) -> Pod {
        let created = CORDONED.parse::<Timestamp>().unwrap() + SignedDuration::from_secs(created_after_s);
        let tolerations = if tolerates { json!([{"operator": "Exists"}]) } else { json!([]) };
        let metadata = json!({"name": "p", "creationTimestamp": created.to_string()});
        serde_json::from_value(json!({"metadata": metadata, "spec": {"tolerations": tolerations}})).unwrap()
    }

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn intolerant_backlog_pod_is_ordinary() {
        let now = Instant::now();
        let (mut backlog, mut by_name) = (returns(), returns());
        assert_eq!(backlog.came(&pod(9, false), now), Arrival::BeforeCordon);
        assert_eq!(by_name.came(&pod(11, false), now), Arrival::AfterCordon { due: now + secs(5) });
        assert_eq!([backlog, by_name].map(|returns| returns.last_from_backlog), [Some(now), None]);
        let mut uncordoned = Returns::to_uncordoned(CORDONED.parse().unwrap());
        assert_eq!(uncordoned.came(&pod(1, false), now), Arrival::AfterCordon { due: now + secs(5) });
    }

    #[test]
    fn tolerant_pod_created_after_the_list_is_returned() {
        let (now, returned) = (Instant::now(), |due| Arrival::Returned { due: Some(due) });
        assert_eq!(returns().came(&pod(-6, true), now), Arrival::BeforeCordon);
        let mut returns_of = returns();
        assert_eq!(returns_of.came(&pod(-4, true), now), returned(now + secs(5)), "clocks differ");
        assert_eq!(returns_of.last_from_backlog, None);
        assert_eq!(returns().listed(&pod(9, true), now), Arrival::BeforeCordon, "not evicted before");
        let listed = returns().listed(&pod(11, true), now);
        assert_eq!(listed, Arrival::Returned { due: None }, "an earlier invocation evicted it");
    }

    #[test]
    fn returned_pods_are_evicted_in_two_rounds_with_doubling_pauses() {
        let (mut returns, mut now) = (returns(), Instant::now());
        for pause in [5, 10] {
            let due = Some(now + secs(pause));
            assert_eq!(returns.came(&pod(1, true), now), Arrival::Returned { due });
            assert_eq!(returns.came(&pod(1, true), now + secs(pause - 1)), Arrival::Returned { due }, "the same round");
            now += secs(pause);
        }
        assert_eq!(returns.came(&pod(1, true), now), Arrival::Returned { due: None });
        assert_eq!(returns.came(&pod(60, false), now), Arrival::AfterCordon { due: now + secs(20) }, "waited for");
    }
}
