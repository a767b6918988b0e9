//! Times of a pod's first request and of its forced deletion, which ignores PDBs. Pure.

use std::time::Duration;

use tokio::time::Instant;

use super::{Termination, Window};

/// Minimum pause after an answer of a busy API server. A pause that would pass the pod's forced deletion is shortened, but not
/// below this minimum.
const LEAST_RETRY_AFTER: Duration = Duration::from_secs(1);

/// Minimum timeout of an eviction. Of 110 evictions at once, the last was answered after 240 ms.
pub const LEAST_EVICTION_TIMEOUT: Duration = Duration::from_secs(2);

/// Minimum time from the eviction of a critical or last pod to its forced deletion. In this time the pod's PDB may release this
/// pod or another pod of the app.
const LEAST_TIME_FOR_A_BUDGET: Duration = Duration::from_secs(20);

/// Maximum time from the eviction of a critical pod to its forced deletion, while a hook holds the instance and ordinary pods are
/// still leaving. Ten minutes are enough, because the pod's replacement starts within minutes.
const MOST_TIME_FOR_A_BUDGET: Duration = Duration::from_mins(10);

impl Window {
    /// Last time at which a request still gives the pod its whole `grace`. If the instance goes at an unknown time: the time
    /// until which blockers are respected.
    pub fn last_safe_moment(&self, grace: Duration) -> Option<Instant> {
        if let Termination::SoonAtUnknownTime { respected_until } = self.instance_goes {
            return Some(respected_until.max(self.start));
        }
        let goes = self.instance_goes.latest()?;
        Some(goes.checked_sub(grace.saturating_add(self.margin)).unwrap_or(self.start).max(self.start))
    }

    /// Time of the next request after a failed one: `after` from now, but neither past the pod's forced deletion nor past the
    /// window.
    pub fn again(&self, after: Duration, grace: Duration, now: Instant) -> Instant {
        let latest = self.forced_from(grace).unwrap_or(self.end).min(self.end);
        (now + after).min(latest.max(now + LEAST_RETRY_AFTER))
    }

    /// Timeout of an eviction that is sent now: the time until the pod's forced deletion, but at least `LEAST_EVICTION_TIMEOUT`,
    /// because the API server may be slightly slow. `None`: the usual timeout of a call.
    pub fn eviction_timeout(&self, grace: Duration, now: Instant) -> Option<Duration> {
        let left = self.forced_from(grace)?.checked_duration_since(now).filter(|left| !left.is_zero())?;
        Some(left.max(LEAST_EVICTION_TIMEOUT))
    }

    /// Time of a blocked pod's forced deletion: the pod's last safe moment, but not in the first half of the window. In the first
    /// half, a pod with a long grace period would be deleted at once, despite its PDB. If a hook holds the instance of a dead
    /// node, the pod is forced at once.
    pub fn forced_from(&self, grace: Duration) -> Option<Instant> {
        if let Termination::SoonAtUnknownTime { .. } = self.instance_goes {
            return self.last_safe_moment(grace);
        }
        let forced = self.last_safe_moment(grace)?.max(self.half()?);
        let dead_since = self.dead_since.filter(|_| matches!(self.instance_goes, Termination::AtTheLatest(_)));
        Some(dead_since.map_or(forced, |dead| forced.min(dead)))
    }

    /// Time from which a critical pod is evicted even if ordinary pods remain, and from which a do-not-disrupt annotation is
    /// ignored. Never later than [`Self::last_from`], because the pod's PDB needs time.
    /// * The instance goes at an unknown time: at once.
    /// * The instance goes at a known time: middle of the window.
    /// * A hook holds the instance: the later of the middle and ten minutes before the forced deletion.
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

    /// Time from which a pod of the last tier is evicted even if other pods remain. From this time the pod's PDB has
    /// `LEAST_TIME_FOR_A_BUDGET` until the forced deletion. Never later than the pod's last safe moment.
    pub fn last_from(&self, grace: Duration) -> Option<Instant> {
        if let Termination::SoonAtUnknownTime { .. } = self.instance_goes {
            return Some(self.start);
        }
        let in_time = self.forced_from(grace)?.checked_sub(LEAST_TIME_FOR_A_BUDGET).unwrap_or(self.start);
        Some(in_time.min(self.last_safe_moment(grace)?).max(self.start))
    }

    /// Middle of the window; `None`: no end of the instance is known. On a node that answers, no pod is forced before the middle.
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
