//! Computes when a pod is evicted at the latest, and when a pod is deleted despite its PDB. Pure.

use std::time::Duration;

use tokio::time::Instant;

use super::{Termination, Window};

/// If the pod's forced deletion is due soon, the pause after a failed request is shortened, but not below this length.
const LEAST_RETRY_AFTER: Duration = Duration::from_secs(1);

/// Minimum timeout of an eviction. The API server answered each of 110 concurrent evictions within 240 ms.
pub const LEAST_EVICTION_TIMEOUT: Duration = Duration::from_secs(2);

/// Minimum time from a pod's first eviction request to its forced deletion. Applies to the tiers `Critical` and `Last`. In this
/// time, the pod's PDB may allow the eviction.
const LEAST_TIME_FOR_A_BUDGET: Duration = Duration::from_secs(20);

/// Time before its forced deletion at which a critical pod stops waiting for ordinary pods. Applies if a lifecycle hook holds the
/// instance. [`Window::critical_from`] has the limits.
const MOST_TIME_FOR_A_BUDGET: Duration = Duration::from_mins(10);

impl Window {
    /// Returns the last time at which a deletion still gives the pod its whole `grace`. If AWS takes the instance at an unknown
    /// time, returns the time until which PDBs are respected. `None`: AWS may keep the instance.
    pub fn last_safe_moment(&self, grace: Duration) -> Option<Instant> {
        if let Termination::SoonAtUnknownTime { respected_until } = self.instance_goes {
            return Some(respected_until.max(self.start));
        }
        let goes = self.instance_goes.latest()?;
        Some(goes.checked_sub(grace.saturating_add(self.margin)).unwrap_or(self.start).max(self.start))
    }

    /// Returns the time of the next request after a failed request: `now + after`, or earlier if the pod's forced deletion or
    /// the end of the window comes first. A shortened pause is at least `LEAST_RETRY_AFTER`.
    pub fn again(&self, after: Duration, grace: Duration, now: Instant) -> Instant {
        let latest = self.forced_from(grace).unwrap_or(self.end).min(self.end);
        (now + after).min(latest.max(now + LEAST_RETRY_AFTER))
    }

    /// Returns the timeout of an eviction that is sent now: the time until the pod's forced deletion, but at least
    /// `LEAST_EVICTION_TIMEOUT`. `None`: the default timeout of the Kubernetes client.
    pub fn eviction_timeout(&self, grace: Duration, now: Instant) -> Option<Duration> {
        let left = self.forced_from(grace)?.checked_duration_since(now).filter(|left| !left.is_zero())?;
        Some(left.max(LEAST_EVICTION_TIMEOUT))
    }

    /// Returns the time from which a blocked pod is deleted despite its PDB: the last safe moment, but not before
    /// [`half`](Self::half). If a lifecycle hook holds the instance, the time is not later than `dead_since`. `None`: AWS may
    /// keep the instance.
    pub fn forced_from(&self, grace: Duration) -> Option<Instant> {
        if let Termination::SoonAtUnknownTime { .. } = self.instance_goes {
            return self.last_safe_moment(grace);
        }
        let forced = self.last_safe_moment(grace)?.max(self.half()?);
        let dead_since = self.dead_since.filter(|_| matches!(self.instance_goes, Termination::AtTheLatest(_)));
        Some(dead_since.map_or(forced, |dead| forced.min(dead)))
    }

    /// Returns the time from which a critical pod is evicted even if ordinary pods remain, and do-not-disrupt annotations are
    /// ignored. It is [`Self::last_from`], or the following time if that is earlier:
    /// * If AWS takes the instance at an unknown time: the start of the window.
    /// * If AWS takes the instance at a known time: [`Self::half`].
    /// * If a hook holds the instance: ten minutes before the forced deletion, or [`Self::half`] if that is later.
    pub fn critical_from(&self, grace: Duration) -> Option<Instant> {
        if let Termination::SoonAtUnknownTime { .. } = self.instance_goes {
            return Some(self.start);
        }
        let (forced, half) = (self.forced_from(grace)?, self.half()?);
        let before = |time| forced.checked_sub(time).unwrap_or(self.start);
        let opens = match self.instance_goes {
            Termination::AtTheLatest(_) => half.max(before(MOST_TIME_FOR_A_BUDGET)),
            _ => half,
        };
        Some(opens.min(self.last_from(grace)?).max(self.start))
    }

    /// Returns the time from which a pod of the tier `Last` is evicted even if other pods remain:
    /// * If AWS takes the instance at an unknown time: the start of the window.
    /// * Otherwise: [`Self::last_safe_moment`], or 20 s before [`Self::forced_from`] if that is earlier.
    pub fn last_from(&self, grace: Duration) -> Option<Instant> {
        if let Termination::SoonAtUnknownTime { .. } = self.instance_goes {
            return Some(self.start);
        }
        let in_time = self.forced_from(grace)?.checked_sub(LEAST_TIME_FOR_A_BUDGET).unwrap_or(self.start);
        Some(in_time.min(self.last_safe_moment(grace)?).max(self.start))
    }

    /// Returns the middle between the start of the window and the time at which AWS takes the instance. `None`: that time is
    /// unknown.
    pub fn half(&self) -> Option<Instant> {
        Some(self.start + self.instance_goes.latest()?.saturating_duration_since(self.start) / 2)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::drain::deadline::tests::{hard, soon, window};

    #[test]
    fn critical_pod_is_requested_at_half_the_window_or_earlier() {
        let now = Instant::now();
        let seconds = Duration::from_secs;
        let from = |window: Window, grace_s| window.critical_from(seconds(grace_s)).unwrap() - now;
        assert_eq!(from(hard(now, 120), 30), seconds(60), "it is forced at 88 s");
        assert_eq!(from(hard(now, 120), 58), seconds(40), "it is forced at 60 s");
        assert_eq!(from(hard(now, 120), 90), seconds(28), "its last safe moment");
        assert_eq!(from(hard(now, 120), 600), seconds(0));
        let hook = |window_s| Window {
            instance_goes: Termination::AtTheLatest(now + seconds(window_s)),
            ..hard(now, window_s)
        };
        assert_eq!(from(hook(3600), 30), seconds(3568 - 600));
        assert_eq!(from(hook(3600), 900), seconds(2698 - 600));
        assert_eq!(from(hook(600), 30), seconds(300));
        assert_eq!(from(soon(now, 120), 30), seconds(0));
    }

    #[test]
    fn last_pod_is_requested_in_time_for_its_budget() {
        let now = Instant::now();
        let seconds = Duration::from_secs;
        let from = |window: Window, grace_s| window.last_from(seconds(grace_s)).unwrap() - now;
        assert_eq!(from(hard(now, 120), 30), seconds(68), "it is forced at 88 s");
        assert_eq!(from(hard(now, 120), 90), seconds(28), "its last safe moment");
        assert_eq!(from(hard(now, 120), 600), seconds(0));
        let hook = Window { instance_goes: Termination::AtTheLatest(now + seconds(3600)), ..hard(now, 3600) };
        assert_eq!(from(hook, 30), seconds(3548));
        assert_eq!(from(soon(now, 120), 30), seconds(0));
        let open = Window { instance_goes: Termination::MayStay, ..hard(now, 120) };
        assert_eq!(open.last_from(seconds(30)), None, "the instance may stay");
    }

    #[test]
    fn throttled_request_is_repeated_before_the_pod_is_forced() {
        let now = Instant::now();
        let again = |window: Window, seconds, at| {
            let grace = Duration::from_secs(30);
            window.again(Duration::from_secs(seconds), grace, now + Duration::from_secs(at)) - now
        };
        let seconds = Duration::from_secs;
        assert_eq!(again(hard(now, 120), 10, 20), seconds(30));
        assert_eq!(again(hard(now, 120), 10, 85), seconds(88), "its last safe moment");
        assert_eq!(again(hard(now, 120), 10, 100), seconds(101), "the least Retry-After");
        let soft = Window { instance_goes: Termination::MayStay, ..hard(now, 120) };
        assert_eq!(again(soft, 10, 100), seconds(110));
        assert_eq!(again(soft, 10, 115), seconds(120), "the end of the window");
    }

    #[test]
    fn eviction_times_out_when_its_pod_is_forced() {
        let now = Instant::now();
        let (grace, seconds) = (Duration::from_secs(30), Duration::from_secs);
        let eviction_timeout = |at| hard(now, 120).eviction_timeout(grace, now + seconds(at));
        assert_eq!(eviction_timeout(80), Some(seconds(8)));
        assert_eq!(eviction_timeout(87), Some(seconds(2)), "a slightly slow API server");
        assert_eq!(eviction_timeout(88), None);
        let open = Window { instance_goes: Termination::MayStay, ..hard(now, 120) };
        assert_eq!(open.eviction_timeout(grace, now), None);
    }

    proptest! {
        #[test]
        fn pod_is_forced_at_its_last_safe_moment_after_half_the_window(
            grace_s in 0..200_000_u64, half_ms in 0..86_400_000_u64, margin_ms in 0..60_000_u64,
        ) {
            let start = Instant::now();
            let forced = window(start, 2 * half_ms, margin_ms).forced_from(Duration::from_secs(grace_s));
            let expected = half_ms.max((2 * half_ms).saturating_sub(1000 * grace_s + margin_ms));
            prop_assert_eq!(forced, Some(start + Duration::from_millis(expected)));
        }

        #[test]
        fn critical_pods_budget_has_time_for_any_grace(
            grace_s in 0..200_000_u64, more_s in 0..1000_u64, half_ms in 0..86_400_000_u64, hook in any::<bool>(),
        ) {
            let start = Instant::now();
            let window = window(start, 2 * half_ms, 2000);
            let window = if hook { Window { instance_goes: Termination::AtTheLatest(window.end), ..window } } else { window };
            let grace = Duration::from_secs(grace_s);
            let (requested, forced) = (window.critical_from(grace).unwrap(), window.forced_from(grace).unwrap());
            prop_assert!(requested == start || requested + LEAST_TIME_FOR_A_BUDGET <= forced);
            prop_assert!(requested <= window.last_safe_moment(grace).unwrap());
            prop_assert!(hook || requested <= start + Duration::from_millis(half_ms));
            prop_assert!(window.critical_from(grace + Duration::from_secs(more_s)).unwrap() <= requested);
        }
    }
}
