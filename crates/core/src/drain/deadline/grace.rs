//! Computes the grace period that an eviction or deletion gives a pod before AWS takes the instance. Pure.

use std::time::Duration;

use tokio::time::Instant;

use super::Window;

/// Minimum grace period. At zero, the API server would remove the pod's object while the pod's containers still run.
pub(super) const LEAST_GRACE: Duration = Duration::from_secs(1);

/// Minimum time from now to the end of a shortened grace period. The API server counts the period from the pod's first
/// deletion, and kills the pod at once if the shortened period is already over.
const AHEAD: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grace {
    Own,
    /// The grace period is shortened, because AWS takes the instance before the pod's own grace period would end.
    Clamped(Duration),
}

/// Deletion of a terminating pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deletion {
    /// Time of the first deletion request.
    pub since: Instant,
    /// End of the grace period.
    pub by: Instant,
}

impl Window {
    /// Returns the grace period of a request that is sent now: the pod's own, but at most the time until AWS takes the instance.
    pub fn grace(&self, grace: Duration, now: Instant) -> Grace {
        match self.left(now) {
            Some(left) if left < grace => Grace::Clamped(left),
            _ => Grace::Own,
        }
    }

    /// Returns a shorter grace period for a terminating pod that would still run when AWS takes the instance. `None`: no further
    /// request is sent.
    pub fn shortened(&self, deletion: Deletion, now: Instant) -> Option<Grace> {
        let outlasts = self.instance_goes.hard().is_some_and(|goes| goes < deletion.by);
        let left = self.left(now).filter(|_| outlasts)?;
        // The API server adds the new grace period to the time of the first deletion (apiserver, `registry/rest/delete.go`). If
        // the sum is in the past, the pod is killed at once.
        let allowed_ends = now + AHEAD..deletion.by;
        allowed_ends.contains(&(deletion.since + left)).then_some(Grace::Clamped(left))
    }

    /// Returns the time until AWS takes the instance, minus the margin, rounded down to whole seconds. `None`: the time is
    /// unknown.
    fn left(&self, now: Instant) -> Option<Duration> {
        let left = self.instance_goes.hard()?.saturating_duration_since(now).saturating_sub(self.margin);
        Some(Duration::from_secs(left.as_secs()).max(LEAST_GRACE))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::drain::deadline::tests::{deletion, given, hard, window};

    #[test]
    fn grace_is_the_pods_own_or_the_time_left_but_at_least_a_second() {
        let now = Instant::now();
        assert_eq!(hard(now, 120).grace(Duration::from_secs(118), now), Grace::Own);
        assert_eq!(hard(now, 120).grace(Duration::from_secs(119), now), Grace::Clamped(Duration::from_secs(118)));
        assert_eq!(hard(now, 1).grace(Duration::from_secs(30), now), Grace::Clamped(Duration::from_secs(1)));
    }

    #[test]
    fn leaving_pod_is_requested_again_only_without_loss() {
        let now = Instant::now();
        let shortened = |ago_s, grace_s| hard(now, 120).shortened(deletion(ago_s, grace_s, now), now);
        let left = Some(Grace::Clamped(Duration::from_secs(118)));
        assert_eq!(shortened(0, 600), left);
        assert_eq!(shortened(113, 600), left);
        assert_eq!(shortened(114, 600), None, "over before the API server has the request");
        assert_eq!(shortened(300, 600), None, "killed at once");
        assert_eq!(shortened(60, 180), None, "in time");
        assert_eq!(shortened(60, 181), left);
    }

    /// Grace that the API server gives a leaving pod that is requested again at that time (`delete.go`).
    fn taken(deletion: Deletion, grace: Duration, at: Instant) -> Duration {
        if deletion.since + grace < at { Duration::from_secs(1) } else { grace.min(deletion.by - deletion.since) }
    }

    proptest! {
        #[test]
        fn leaving_pod_loses_nothing_by_another_request(
            ago_s in 0..1000_u64, grace_s in 1..2000_u64, left_ms in 0..400_000_u64, margin_ms in 0..60_000_u64,
            way_ms in 0..5000_u64,
        ) {
            let now = Instant::now();
            let (window, deletion) = (window(now, left_ms, margin_ms), deletion(ago_s, grace_s, now));
            let goes = now + Duration::from_millis(left_ms);
            if let Some(grace) = window.shortened(deletion, now) {
                let Grace::Clamped(given) = grace else { panic!("not clamped: {grace:?}") };
                prop_assert_eq!(taken(deletion, given, now + Duration::from_millis(way_ms)), given);
                prop_assert!(now + given + window.margin <= goes, "{given:?}");
                prop_assert!(goes < deletion.by, "needless");
            }
        }

        #[test]
        fn grace_is_between_a_second_and_the_time_left(
            own_s in 0..200_000_u64, left_ms in 0..7_200_000_u64, margin_ms in 0..60_000_u64,
        ) {
            let now = Instant::now();
            let grace = Duration::from_secs(own_s);
            let given = given(window(now, left_ms, margin_ms), grace, now);
            let left = Duration::from_millis(left_ms.saturating_sub(margin_ms));
            prop_assert!(given <= left.max(LEAST_GRACE));
            prop_assert!(given <= grace, "{given:?}");
            prop_assert!(given == grace || given >= LEAST_GRACE);
        }
    }
}
