//! How much of its grace a pod is given before its instance goes. Pure.

use std::time::Duration;

use tokio::time::Instant;

use super::Window;

/// Never zero: a grace period of zero deletes the object while its containers still run.
pub(super) const LEAST_GRACE: Duration = Duration::from_secs(1);

/// A pod that is leaving already is not requested again unless its new end is at least so far ahead. One that is past when
/// the API server gets to it makes a grace of one second. It has the end in whole seconds, and a clock of its own; the
/// rest is for the request's way.
const AHEAD: Duration = Duration::from_secs(5);

/// The grace period that a pod is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grace {
    /// What the pod itself asks for.
    Own,
    /// Less, because the instance goes before.
    Clamped(Duration),
}

/// A deletion that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deletion {
    /// When the pod was requested to leave, the first time.
    pub since: Instant,
    /// When it should have stopped.
    pub by: Instant,
}

impl Window {
    /// The grace period for a pod that is requested to leave now: its own if there is time for it,
    /// else what is left.
    pub fn grace(&self, grace: Duration, now: Instant) -> Grace {
        match self.left(now) {
            Some(left) if left < grace => Grace::Clamped(left),
            _ => Grace::Own,
        }
    }

    /// The grace period for a pod that is leaving already and has been given longer than its instance has: what is left.
    /// `None`: it is not requested again, and goes on.
    ///
    /// The API server counts from the first deletion (apiserver, `registry/rest/delete.go`): what is left, counted from
    /// there, may be over, and the pod would be killed at once. The kubelet begins to count when it is told
    /// (kubernetes, `pod_workers.go`): as long as the API server takes what is left, the pod gets all of it.
    pub fn shortened(&self, deletion: Deletion, now: Instant) -> Option<Grace> {
        let outlasts = self.instance_goes.hard().is_some_and(|goes| goes < deletion.by);
        let left = self.left(now).filter(|_| outlasts)?;
        let is_taken = now + AHEAD..deletion.by;
        is_taken.contains(&(deletion.since + left)).then_some(Grace::Clamped(left))
    }

    /// How long a pod that is requested to leave now may take, in whole seconds, rounded down: the API takes no fractions.
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
    fn a_pod_gets_its_own_grace_while_there_is_room() {
        let now = Instant::now();
        assert_eq!(hard(now, 120).grace(Duration::from_secs(118), now), Grace::Own);
        assert_eq!(hard(now, 120).grace(Duration::from_secs(119), now), Grace::Clamped(Duration::from_secs(118)));
    }

    #[test]
    fn a_pod_gets_a_second_at_least_when_none_is_left() {
        let now = Instant::now();
        assert_eq!(hard(now, 1).grace(Duration::from_secs(30), now), Grace::Clamped(Duration::from_secs(1)));
    }

    #[test]
    fn a_pod_that_leaves_is_requested_again_only_as_long_as_it_loses_nothing() {
        let now = Instant::now();
        let shortened = |ago_s, grace_s| hard(now, 120).shortened(deletion(ago_s, grace_s, now), now);
        let left = Some(Grace::Clamped(Duration::from_secs(118)));
        assert_eq!(shortened(0, 600), left);
        assert_eq!(shortened(113, 600), left);
        assert_eq!(shortened(114, 600), None, "it would be over before the API server has it");
        assert_eq!(shortened(300, 600), None, "it would be killed at once");
        assert_eq!(shortened(60, 180), None, "it is in time");
        assert_eq!(shortened(60, 181), left);
    }

    /// What the API server makes of it when a pod that leaves is requested again at that time (`delete.go`): its grace.
    fn taken(deletion: Deletion, grace: Duration, at: Instant) -> Duration {
        if deletion.since + grace < at { Duration::from_secs(1) } else { grace.min(deletion.by - deletion.since) }
    }

    proptest! {
        #[test]
        fn a_pod_that_leaves_loses_nothing_by_being_requested_again(
            ago_s in 0..1000_u64, grace_s in 1..2000_u64, left_ms in 0..400_000_u64, margin_ms in 0..60_000_u64,
            way_ms in 0..5000_u64,
        ) {
            let now = Instant::now();
            let (window, deletion) = (window(now, left_ms, margin_ms), deletion(ago_s, grace_s, now));
            let goes = now + Duration::from_millis(left_ms);
            if let Some(grace) = window.shortened(deletion, now) {
                let Grace::Clamped(given) = grace else { panic!("the API server makes nothing of {grace:?}") };
                prop_assert_eq!(taken(deletion, given, now + Duration::from_millis(way_ms)), given);
                prop_assert!(now + given + window.margin <= goes, "{given:?}");
                prop_assert!(goes < deletion.by, "it needed nothing");
            }
        }

        #[test]
        fn the_grace_is_never_zero_never_more_than_is_asked_for_and_never_more_than_is_left(
            asked_s in 0..200_000_u64, left_ms in 0..7_200_000_u64, margin_ms in 0..60_000_u64,
        ) {
            let now = Instant::now();
            let grace = Duration::from_secs(asked_s);
            let given = given(window(now, left_ms, margin_ms), grace, now);
            let left = Duration::from_millis(left_ms.saturating_sub(margin_ms));
            prop_assert!(given <= left.max(LEAST_GRACE));
            prop_assert!(given <= grace, "{given:?}");
            prop_assert!(given == grace || given >= LEAST_GRACE);
        }
    }
}
