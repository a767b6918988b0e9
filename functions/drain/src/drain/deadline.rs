//! How long there is, and what that means for a pod. Pure: instants in, durations out.
//!
//! The rule, for an instance that goes at a known time whatever we do: a pod leaves by eviction,
//! with its own grace period as long as that fits and with what is left when it does not. What
//! holds it (a PodDisruptionBudget, or a wish not to be disturbed) is respected until respecting
//! it any longer would cost the pod its clean shutdown; then the pod is deleted. While a hook
//! holds the instance nothing is deleted.

use std::time::Duration;

use tokio::time::Instant;

/// Never zero: a grace period of zero deletes the object while its containers still run.
const LEAST_GRACE: Duration = Duration::from_secs(1);

/// A request that failed is never repeated sooner, however little time is left.
const LEAST_PAUSE: Duration = Duration::from_millis(500);

/// From when to when a node is drained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    /// When the drain began.
    pub(crate) start: Instant,
    /// When waiting ends.
    pub(crate) end: Instant,
    /// When the instance goes, whatever we do; `None` while a hook holds it.
    pub(crate) instance_goes: Option<Instant>,
    /// What is kept before that: the kubelet must have told the API server that the pods are gone.
    pub(crate) margin: Duration,
}

/// The grace period that a pod is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grace {
    /// What the pod itself asks for.
    Own,
    /// Less, because the instance goes before.
    Clamped(Duration),
}

impl Window {
    /// The grace period for a pod that is told to leave now: its own if there is time for it,
    /// else what is left.
    pub(crate) fn grace(&self, asked: Duration, now: Instant) -> Grace {
        let Some(instance_goes) = self.instance_goes else { return Grace::Own };
        let left = instance_goes.saturating_duration_since(now).saturating_sub(self.margin);
        // Whole seconds, rounded down: the API takes no fractions.
        let left = Duration::from_secs(left.as_secs()).max(LEAST_GRACE);
        if asked <= left { Grace::Own } else { Grace::Clamped(left) }
    }

    /// The last safe moment of a pod that asks for this grace: told to leave then, it still gets
    /// all of it.
    pub(crate) fn last_safe_moment(&self, asked: Duration) -> Option<Instant> {
        let instance_goes = self.instance_goes?;
        Some(instance_goes.checked_sub(asked.saturating_add(self.margin)).unwrap_or(self.start).max(self.start))
    }

    /// When a request that failed is repeated: after the pause, but neither past the pod's last safe
    /// moment nor so late that it could not leave before waiting ends.
    pub(crate) fn again(&self, pause: Duration, asked: Duration, now: Instant) -> Instant {
        let latest = self.instance_goes.unwrap_or(self.end).min(self.end);
        let latest = latest.checked_sub(asked.saturating_add(self.margin)).unwrap_or(now);
        (now + pause).min(latest.max(now + LEAST_PAUSE))
    }

    /// From when on a pod that something holds is deleted all the same: its last safe moment, but
    /// not before half of the window, so that a long grace does not make a budget void.
    pub(crate) fn forced_from(&self, asked: Duration) -> Option<Instant> {
        let instance_goes = self.instance_goes?;
        let half = self.start + instance_goes.saturating_duration_since(self.start) / 2;
        self.last_safe_moment(asked).map(|moment| moment.max(half))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MARGIN: Duration = Duration::from_secs(2);

    fn hard(from: Instant, seconds: u64) -> Window {
        let at = from + Duration::from_secs(seconds);
        Window { start: from, end: at, instance_goes: Some(at), margin: MARGIN }
    }

    #[test]
    fn a_pod_gets_its_own_grace_while_there_is_room() {
        let now = Instant::now();
        assert_eq!(hard(now, 120).grace(Duration::from_secs(118), now), Grace::Own);
        assert_eq!(hard(now, 120).grace(Duration::from_secs(119), now), Grace::Clamped(Duration::from_secs(118)));
    }

    #[test]
    fn a_hook_that_is_held_clamps_nothing_and_forces_nothing() {
        let now = Instant::now();
        let window = Window { start: now, end: now, instance_goes: None, margin: MARGIN };
        assert_eq!(window.grace(Duration::MAX, now), Grace::Own);
        assert_eq!(window.last_safe_moment(Duration::ZERO), None);
        assert_eq!(window.forced_from(Duration::ZERO), None);
    }

    #[test]
    fn a_budget_is_respected_until_it_would_cost_the_pod_its_clean_shutdown() {
        let now = Instant::now();
        let at = |seconds| Some(now + Duration::from_secs(seconds));
        assert_eq!(hard(now, 120).forced_from(Duration::from_secs(30)), at(88));
        assert_eq!(hard(now, 120).forced_from(Duration::from_secs(90)), at(60), "not before half the window");
        assert_eq!(hard(now, 120).forced_from(Duration::MAX), at(60));
    }

    proptest! {
        #[test]
        fn nothing_is_forced_before_half_the_window_nor_later_than_its_last_safe_moment_after_it(
            asked_s in 0..200_000_u64, window_ms in 0..7_200_000_u64,
        ) {
            let start = Instant::now();
            let window_length = Duration::from_millis(window_ms);
            let goes = start + window_length;
            let window = Window { start, end: goes, instance_goes: Some(goes), margin: MARGIN };
            let asked = Duration::from_secs(asked_s);
            let forced = window.forced_from(asked).expect("the deadline is hard");
            prop_assert!(forced >= start + window_length / 2);
            prop_assert!(forced <= goes);
            // The model: at half the window there is time for the whole grace, or there is not.
            let fits = window_length / 2 >= asked + MARGIN;
            prop_assert!(!fits || forced + asked + MARGIN == goes, "a grace that fits is given whole");
            prop_assert!(fits || forced == start + window_length / 2);
        }

        #[test]
        fn a_tighter_deadline_never_forces_later(asked_s in 0..1000_u64, window_s in 0..1000_u64, less_s in 0..1000_u64) {
            let now = Instant::now();
            let asked = Duration::from_secs(asked_s);
            let forced = |seconds| hard(now, seconds).forced_from(asked);
            prop_assert!(forced(window_s.saturating_sub(less_s)) <= forced(window_s));
        }

        #[test]
        fn a_clamped_grace_is_never_zero_and_never_more_than_is_left(asked_s in 0..200_000_u64, left_ms in 0..7_200_000_u64) {
            let now = Instant::now();
            let at = now + Duration::from_millis(left_ms);
            let window = Window { start: now, end: at, instance_goes: Some(at), margin: MARGIN };
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
