//! How long there is, and what that means for a pod. Pure: instants in, durations out.

use std::time::Duration;

use tokio::time::Instant;

/// Before the instance goes, the kubelet must have told the API server that the pods are gone.
const MARGIN: Duration = Duration::from_secs(2);
/// Never zero: a grace period of zero deletes the object while its containers still run.
const LEAST_GRACE: Duration = Duration::from_secs(1);

/// From when to when a node is drained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    /// When waiting ends.
    pub(crate) end: Instant,
    /// When the instance goes, whatever we do; `None` while a hook holds it.
    pub(crate) instance_goes: Option<Instant>,
}

/// The grace period that an eviction asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grace {
    /// What the pod itself asks for.
    Own,
    /// Less, because the instance goes before.
    Clamped(Duration),
}

impl Window {
    /// The grace period for a pod that is evicted now: its own if there is time for it, else
    /// what is left.
    pub(crate) fn grace(&self, asked: Duration, now: Instant) -> Grace {
        let Some(instance_goes) = self.instance_goes else { return Grace::Own };
        let left = instance_goes.saturating_duration_since(now).saturating_sub(MARGIN);
        // Whole seconds, rounded down: the API takes no fractions.
        let left = Duration::from_secs(left.as_secs()).max(LEAST_GRACE);
        if asked <= left { Grace::Own } else { Grace::Clamped(left) }
    }

    /// When the critical tier must start at the latest, so that the pod that asks for the
    /// longest grace gets it.
    pub(crate) fn critical_tier_at(&self, longest_grace: Duration) -> Option<Instant> {
        self.instance_goes.and_then(|at| at.checked_sub(longest_grace.saturating_add(MARGIN)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hard(from: Instant, seconds: u64) -> Window {
        let at = from + Duration::from_secs(seconds);
        Window { end: at, instance_goes: Some(at) }
    }

    #[test]
    fn a_pod_gets_its_own_grace_while_there_is_room() {
        let now = Instant::now();
        assert_eq!(hard(now, 120).grace(Duration::from_secs(118), now), Grace::Own);
        assert_eq!(hard(now, 120).grace(Duration::from_secs(119), now), Grace::Clamped(Duration::from_secs(118)));
    }

    #[test]
    fn a_hook_that_is_held_clamps_nothing() {
        let now = Instant::now();
        let window = Window { end: now, instance_goes: None };
        assert_eq!(window.grace(Duration::MAX, now), Grace::Own);
        assert_eq!(window.critical_tier_at(Duration::ZERO), None);
    }

    proptest! {
        #[test]
        fn a_clamped_grace_is_never_zero_and_never_more_than_is_left(asked_s in 0..200_000_u64, left_ms in 0..7_200_000_u64) {
            let now = Instant::now();
            let at = now + Duration::from_millis(left_ms);
            let window = Window { end: at, instance_goes: Some(at) };
            let asked = Duration::from_secs(asked_s);
            match window.grace(asked, now) {
                Grace::Own => prop_assert!(asked <= Duration::from_millis(left_ms) || asked <= LEAST_GRACE),
                Grace::Clamped(given) => {
                    prop_assert!(given >= LEAST_GRACE && given < asked);
                    prop_assert!(given <= Duration::from_millis(left_ms).max(LEAST_GRACE));
                }
            }
        }

        #[test]
        fn a_tighter_deadline_never_gives_more(asked_s in 0..1000_u64, left_s in 0..1000_u64, less_s in 0..1000_u64) {
            let now = Instant::now();
            let asked = Duration::from_secs(asked_s);
            let given = |window: Window| match window.grace(asked, now) { Grace::Own => asked, Grace::Clamped(given) => given };
            prop_assert!(given(hard(now, left_s.saturating_sub(less_s))) <= given(hard(now, left_s)).max(LEAST_GRACE));
        }
    }
}
