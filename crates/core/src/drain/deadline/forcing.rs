//! When a pod is asked to leave, and from when on it is deleted although something blocks it. Pure.

use std::time::Duration;

use tokio::time::Instant;

use super::{Termination, Window};

/// The least `Retry-After` of a busy API server: so long it may always have.
const LEAST_RETRY_AFTER: Duration = Duration::from_secs(1);

/// The least time that an eviction has to be answered: of 110 at once the last was answered after 240 ms.
pub const LEAST_PATIENCE: Duration = Duration::from_secs(2);

/// How long before it may be forced a critical pod is asked at least: so long its budget has to let it go, or another of its
/// app before it.
const LEAST_TIME_FOR_A_BUDGET: Duration = Duration::from_secs(20);

/// How long before it may be forced a critical pod is asked at the earliest while a hook holds the instance and others are
/// still leaving: its replacement starts in minutes.
const MOST_TIME_FOR_A_BUDGET: Duration = Duration::from_mins(10);

impl Window {
    /// The last safe moment of a pod that asks for this grace: requested to leave then, it still gets
    /// all of it.
    pub fn last_safe_moment(&self, grace: Duration) -> Option<Instant> {
        if let Termination::Soon { respected_until } = self.instance_goes {
            return Some(respected_until.max(self.start));
        }
        let goes = self.instance_goes.latest()?;
        Some(goes.checked_sub(grace.saturating_add(self.margin)).unwrap_or(self.start).max(self.start))
    }

    /// When a request is repeated for which the API server had no time: as late as it asked for, but
    /// neither past the moment from which the pod may be forced nor past the window.
    pub fn again(&self, after: Duration, grace: Duration, now: Instant) -> Instant {
        let latest = self.forced_from(grace).unwrap_or(self.end).min(self.end);
        (now + after).min(latest.max(now + LEAST_RETRY_AFTER))
    }

    /// How long the answer to an eviction of now is waited for, if less than to any call: at its last safe moment its pod is
    /// deleted, but not because an API server was a little slow.
    pub fn patience(&self, grace: Duration, now: Instant) -> Option<Duration> {
        let left = self.forced_from(grace)?.checked_duration_since(now).filter(|left| !left.is_zero())?;
        Some(left.max(LEAST_PATIENCE))
    }

    /// When a blocked pod is deleted: at its last safe moment, but not before half of the window. Otherwise a long grace period
    /// would make a budget void.
    pub fn forced_from(&self, grace: Duration) -> Option<Instant> {
        if let Termination::Soon { .. } = self.instance_goes {
            return self.last_safe_moment(grace);
        }
        let forced = self.last_safe_moment(grace)?.max(self.half()?);
        let dead_since = self.dead_since.filter(|_| matches!(self.instance_goes, Termination::AtTheLatest(_)));
        Some(dead_since.map_or(forced, |dead| forced.min(dead)))
    }

    /// From when on a critical pod is evicted although others are still there, and a do-not-disrupt pod in spite of its annotation: at half of the window, so that its budget can
    /// work before it is forced; while a hook holds the instance, not more than some minutes before.
    pub fn critical_from(&self, grace: Duration) -> Option<Instant> {
        if let Termination::Soon { .. } = self.instance_goes {
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

    /// From when on a pod that goes last is evicted although others are still there: so long before it may be forced that its
    /// budget can work, and no later than its last safe moment.
    pub fn last_from(&self, grace: Duration) -> Option<Instant> {
        if let Termination::Soon { .. } = self.instance_goes {
            return Some(self.start);
        }
        let in_time = self.forced_from(grace)?.checked_sub(LEAST_TIME_FOR_A_BUDGET).unwrap_or(self.start);
        Some(in_time.min(self.last_safe_moment(grace)?).max(self.start))
    }

    /// Half of the window, if the instance goes at a known time: before, nothing is forced on a node that answers.
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
    fn a_budget_is_respected_until_it_would_cost_the_pod_its_clean_shutdown() {
        let now = Instant::now();
        let at = |seconds| Some(now + Duration::from_secs(seconds));
        assert_eq!(hard(now, 120).forced_from(Duration::from_secs(30)), at(88));
        assert_eq!(hard(now, 120).forced_from(Duration::from_secs(90)), at(60), "not before half the window");
        assert_eq!(hard(now, 120).forced_from(Duration::MAX), at(60));
    }

    #[test]
    fn a_critical_pod_is_asked_at_half_the_window_and_early_enough_for_its_budget() {
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
        assert_eq!(from(soon(now, seconds(120)), 30), seconds(0));
    }

    #[test]
    fn a_pod_that_goes_last_is_asked_early_enough_for_its_budget_and_not_at_half_the_window() {
        let now = Instant::now();
        let seconds = Duration::from_secs;
        let from = |window: Window, grace_s| window.last_from(seconds(grace_s)).unwrap() - now;
        assert_eq!(from(hard(now, 120), 30), seconds(68), "it is forced at 88 s");
        assert_eq!(from(hard(now, 120), 90), seconds(28), "its last safe moment");
        assert_eq!(from(hard(now, 120), 600), seconds(0));
        let hook = Window { instance_goes: Termination::AtTheLatest(now + seconds(3600)), ..hard(now, 3600) };
        assert_eq!(from(hook, 30), seconds(3548));
        assert_eq!(from(soon(now, seconds(120)), 30), seconds(0));
        let open = Window { instance_goes: Termination::Unknown, ..hard(now, 120) };
        assert_eq!(open.last_from(seconds(30)), None, "nobody says that it goes at all");
    }

    #[test]
    fn a_busy_api_server_waits_no_longer_than_the_pod_can() {
        let now = Instant::now();
        let again = |window: Window, seconds, at| {
            let grace = Duration::from_secs(30);
            window.again(Duration::from_secs(seconds), grace, now + Duration::from_secs(at)) - now
        };
        let seconds = Duration::from_secs;
        assert_eq!(again(hard(now, 120), 10, 20), seconds(30));
        assert_eq!(again(hard(now, 120), 10, 85), seconds(88), "its last safe moment");
        assert_eq!(again(hard(now, 120), 10, 100), seconds(101), "the least that it asks for");
        let soft = Window { instance_goes: Termination::Unknown, ..hard(now, 120) };
        assert_eq!(again(soft, 10, 100), seconds(110));
        assert_eq!(again(soft, 10, 115), seconds(120), "the end of the window");
    }

    #[test]
    fn an_eviction_is_waited_for_until_its_pod_is_forced_and_a_late_one_as_any_call() {
        let now = Instant::now();
        let (grace, seconds) = (Duration::from_secs(30), Duration::from_secs);
        let patience = |at| hard(now, 120).patience(grace, now + seconds(at));
        assert_eq!(patience(80), Some(seconds(8)));
        assert_eq!(patience(87), Some(seconds(2)), "an API server may be a little slow");
        assert_eq!(patience(88), None);
        let open = Window { instance_goes: Termination::Unknown, ..hard(now, 120) };
        assert_eq!(open.patience(grace, now), None);
    }

    /// What the rule says of forcing, in whole milliseconds from the start.
    fn forced_by_the_rule(window_ms: u64, asked_ms: u64, margin_ms: u64) -> u64 {
        (window_ms / 2).max(window_ms.saturating_sub(asked_ms + margin_ms))
    }

    proptest! {
        #[test]
        fn a_pod_is_forced_at_its_last_safe_moment_but_not_before_half_the_window(
            asked_s in 0..200_000_u64, half_ms in 0..86_400_000_u64, margin_ms in 0..60_000_u64,
        ) {
            let start = Instant::now();
            let forced = window(start, 2 * half_ms, margin_ms).forced_from(Duration::from_secs(asked_s));
            let by_the_rule = forced_by_the_rule(2 * half_ms, 1000 * asked_s, margin_ms);
            prop_assert_eq!(forced, Some(start + Duration::from_millis(by_the_rule)));
        }

        #[test]
        fn a_critical_pods_budget_has_time_whatever_its_grace_and_never_less_for_a_longer_one(
            asked_s in 0..200_000_u64, more_s in 0..1000_u64, half_ms in 0..86_400_000_u64, hook in any::<bool>(),
        ) {
            let start = Instant::now();
            let window = window(start, 2 * half_ms, 2000);
            let window = if hook { Window { instance_goes: Termination::AtTheLatest(window.end), ..window } } else { window };
            let grace = Duration::from_secs(asked_s);
            let (asked, forced) = (window.critical_from(grace).unwrap(), window.forced_from(grace).unwrap());
            prop_assert!(asked == start || asked + LEAST_TIME_FOR_A_BUDGET <= forced);
            prop_assert!(asked <= window.last_safe_moment(grace).unwrap());
            prop_assert!(hook || asked <= start + Duration::from_millis(half_ms));
            prop_assert!(window.critical_from(grace + Duration::from_secs(more_s)).unwrap() <= asked);
        }
    }
}
