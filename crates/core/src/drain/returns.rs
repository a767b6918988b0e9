//! Classifies pods that come to a cordoned node. Such a pod may tolerate the cordon, or name the node in its specification. Pure.
//!
//! After each eviction, the pod's controller may place a new pod on the node. Therefore new pods are evicted in rounds. The
//! pause doubles with each round. A new pod that tolerates the cordon is called *returned*. The drain does not wait for it.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use crate::kube::pod::Pod;

/// Pause before the first round of evictions of new pods. The pause doubles with each further round.
const PAUSE: Duration = Duration::from_secs(5);
/// Time after the cordon in which the scheduler may still assign new pods to the node. The scheduler observes a cordon after
/// about a second.
const SCHEDULER_LAG: SignedDuration = SignedDuration::from_secs(5);
/// Maximum difference between the clocks of the API server and the Lambda function. The API server's times are whole seconds.
const CLOCK_SKEW: SignedDuration = SignedDuration::from_secs(5);
/// Number of rounds after which a pod that tolerates the cordon starts no further round.
const ROUNDS: u32 = 2;
/// Maximum number of tracked pods that were placed after the cordon. A controller may create such pods endlessly.
const TRACKED: usize = 50;

/// Class of a new pod. Depends on the pod's creation time and tolerations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// The pod was placed on the node before the scheduler observed the cordon.
    BeforeCordon,
    /// The pod was placed after the cordon, but does not tolerate the cordon. The pod is evicted at `due`, and the drain waits
    /// for it.
    AfterCordon { due: Instant },
    /// The pod tolerates the cordon, and was placed after the cordon. If `due` is set, the pod is evicted at that time. The
    /// drain does not wait for the pod.
    Returned { due: Option<Instant> },
    /// The pod is ignored, because the drain already tracks the maximum number of pods that were placed after the cordon.
    Surplus,
}

/// Classifier of pods that come to the node during the drain.
#[derive(Debug)]
pub struct Returns {
    cordoned: Timestamp,
    tracked: usize,
    rounds: u32,
    /// Planned time of the latest round of evictions.
    round: Option<Instant>,
    /// Time at which the last late pod came. The scheduler assigns late pods before it observes the cordon.
    pub last_late_pod_at: Option<Instant>,
}

impl Returns {
    /// Creates the initial state for a node that was cordoned at `cordoned`.
    pub fn since(cordoned: Timestamp) -> Self {
        Self { cordoned, tracked: 0, rounds: 0, round: None, last_late_pod_at: None }
    }

    /// Creates the initial state for a node that could not be cordoned. Pods that are created after `claimed` are treated like
    /// pods that were placed after a cordon.
    pub fn for_uncordoned(claimed: Timestamp) -> Self {
        Self::since(claimed.saturating_sub(SCHEDULER_LAG + CLOCK_SKEW).unwrap_or(Timestamp::MIN))
    }

    pub fn cordoned_again(&mut self, at: Timestamp) {
        self.cordoned = at;
    }

    /// Classifies a pod that was on the node at the start of the invocation. A returned pod is not
    /// evicted, because an earlier invocation may have done so.
    pub fn listed(&mut self, pod: &Pod, now: Instant) -> Arrival {
        match self.judge(pod, SCHEDULER_LAG + CLOCK_SKEW, now) {
            Arrival::Returned { .. } => Arrival::Returned { due: None },
            arrival => arrival,
        }
    }

    /// Classifies a pod that came to the node during the invocation. Returns [`Arrival::BeforeCordon`] in these cases:
    /// * The pod tolerates the cordon, and was created more than `CLOCK_SKEW` before the cordon.
    /// * The pod does not tolerate the cordon, and was created less than `SCHEDULER_LAG + CLOCK_SKEW` after the cordon.
    pub fn came(&mut self, pod: &Pod, now: Instant) -> Arrival {
        let tolerates = pod.spec.tolerates_cordon;
        let arrival = self.judge(pod, if tolerates { -CLOCK_SKEW } else { SCHEDULER_LAG + CLOCK_SKEW }, now);
        if arrival == Arrival::BeforeCordon {
            self.last_late_pod_at = Some(now);
        }
        arrival
    }

    /// Classifies a pod. Returns [`Arrival::BeforeCordon`] if the pod was created before `cordoned + offset_from_cordon`.
    fn judge(&mut self, pod: &Pod, offset_from_cordon: SignedDuration, now: Instant) -> Arrival {
        let from = self.cordoned.saturating_add(offset_from_cordon).unwrap_or(Timestamp::MAX);
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
        assert_eq!([backlog, by_name].map(|returns| returns.last_late_pod_at), [Some(now), None]);
        let mut uncordoned = Returns::for_uncordoned(CORDONED.parse().unwrap());
        assert_eq!(uncordoned.came(&pod(1, false), now), Arrival::AfterCordon { due: now + secs(5) });
    }

    #[test]
    fn tolerant_pod_created_after_the_list_is_returned() {
        let (now, returned) = (Instant::now(), |due| Arrival::Returned { due: Some(due) });
        assert_eq!(returns().came(&pod(-6, true), now), Arrival::BeforeCordon);
        let mut returns_of = returns();
        assert_eq!(returns_of.came(&pod(-4, true), now), returned(now + secs(5)), "clocks differ");
        assert_eq!(returns_of.last_late_pod_at, None);
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
