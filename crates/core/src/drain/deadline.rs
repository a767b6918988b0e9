//! How long there is, and what that means for a pod. Pure: instants in, durations out.
//!
//! The rule, for an instance that goes at a known time whatever we do: a pod leaves by eviction,
//! with its own grace period as long as that fits and with what is left when it does not. What
//! blocks it (a PodDisruptionBudget, or its do-not-disrupt annotation) is respected until respecting
//! it any longer would cost the pod its clean shutdown; then the pod is deleted. The end of a hook's
//! longest wait is such a time, because the instance goes then as well; but it clamps no grace.
//!
//! An instance that is going at a time that nobody knows gives no reason to take grace from a pod: a replacement starts when
//! the deletion is accepted, however long the grace. What blocks a pod is respected for a time that is set.

use std::time::Duration;

use tokio::time::Instant;

/// What is kept before the instance goes: a kubelet tells the API server within a second or so that its pods have stopped,
/// and the drain has yet to hear of it.
pub const MARGIN: Duration = Duration::from_secs(2);

/// Never zero: a grace period of zero deletes the object while its containers still run.
const LEAST_GRACE: Duration = Duration::from_secs(1);

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

/// A pod that is leaving already is not requested again unless its new end is at least so far ahead. One that is past when
/// the API server gets to it makes a grace of one second. It has the end in whole seconds, and a clock of its own; the
/// rest is for the request's way.
const AHEAD: Duration = Duration::from_secs(5);

/// From when to when a node is drained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// When the drain began.
    pub start: Instant,
    /// When waiting ends.
    pub end: Instant,
    pub instance_goes: Termination,
    /// What is kept before that: the kubelet must have told the API server that the pods are gone.
    pub margin: Duration,
    /// What is kept for the volumes of a pod that has stopped: as long as a hook is held until they are detached.
    pub detaching: Duration,
    /// Since when the node is taken for dead, if it is. While a hook holds its instance, what blocks its pods is not respected from
    /// then on.
    pub dead_since: Option<Instant>,
}

/// When the instance goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Termination {
    /// Then, whatever we do.
    At(Instant),
    /// When its hook is completed, which is then at the latest.
    AtTheLatest(Instant),
    /// It is going, and nobody says when. What blocks a pod is respected until then.
    Soon { respected_until: Instant },
    /// Nobody says that it goes at all.
    Unknown,
}

impl Termination {
    /// When it goes whatever we do.
    pub fn hard(self) -> Option<Instant> {
        match self {
            Self::At(at) => Some(at),
            Self::AtTheLatest(_) | Self::Soon { .. } | Self::Unknown => None,
        }
    }

    /// When it goes at the latest.
    pub fn latest(self) -> Option<Instant> {
        match self {
            Self::At(at) | Self::AtTheLatest(at) => Some(at),
            Self::Soon { .. } | Self::Unknown => None,
        }
    }
}

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

    /// The same window, when nobody is left on the node to report that a pod has stopped: of an instance that is going, that
    /// says that it has gone, and nothing is respected any longer.
    #[must_use]
    pub fn on_silence(self, now: Instant) -> Self {
        match self.instance_goes {
            Termination::Soon { respected_until } => {
                Self { instance_goes: Termination::Soon { respected_until: respected_until.min(now) }, ..self }
            }
            _ => self,
        }
    }

    /// From when on a pod that something blocks is deleted all the same: its last safe moment, but
    /// not before half of the window, so that a long grace does not make a budget void.
    pub fn forced_from(&self, grace: Duration) -> Option<Instant> {
        if let Termination::Soon { .. } = self.instance_goes {
            return self.last_safe_moment(grace);
        }
        let forced = self.last_safe_moment(grace)?.max(self.half()?);
        let dead_since = self.dead_since.filter(|_| matches!(self.instance_goes, Termination::AtTheLatest(_)));
        Some(dead_since.map_or(forced, |dead| forced.min(dead)))
    }

    /// From when on a critical pod is evicted although others are still there: at half of the window, so that its budget can
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
        let in_time = before(LEAST_TIME_FOR_A_BUDGET).min(self.last_safe_moment(grace)?);
        Some(opens.min(in_time).max(self.start))
    }

    fn half(&self) -> Option<Instant> {
        Some(self.start + self.instance_goes.latest()?.saturating_duration_since(self.start) / 2)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hard(from: Instant, seconds: u64) -> Window {
        let at = from + Duration::from_secs(seconds);
        Window {
            start: from,
            end: at,
            instance_goes: Termination::At(at),
            margin: MARGIN,
            detaching: Duration::ZERO,
            dead_since: None,
        }
    }

    #[test]
    fn a_pod_gets_its_own_grace_while_there_is_room() {
        let now = Instant::now();
        assert_eq!(hard(now, 120).grace(Duration::from_secs(118), now), Grace::Own);
        assert_eq!(hard(now, 120).grace(Duration::from_secs(119), now), Grace::Clamped(Duration::from_secs(118)));
    }

    /// A deletion of so long ago with that grace.
    fn deletion(ago_s: u64, grace_s: u64, now: Instant) -> Deletion {
        let since = now - Duration::from_secs(ago_s);
        Deletion { since, by: since + Duration::from_secs(grace_s) }
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

    #[test]
    fn a_hook_that_is_held_clamps_nothing_and_forces_in_time_for_its_longest_wait() {
        let now = Instant::now();
        let end = now + Duration::from_secs(600);
        let window = Window {
            start: now,
            end,
            instance_goes: Termination::AtTheLatest(end),
            margin: MARGIN,
            detaching: Duration::ZERO,
            dead_since: None,
        };
        assert_eq!(window.grace(Duration::MAX, now), Grace::Own);
        assert_eq!(window.shortened(deletion(0, 600, now), now), None);
        assert_eq!(window.forced_from(Duration::from_secs(30)), Some(end - Duration::from_secs(32)));
        assert_eq!(window.last_safe_moment(Duration::from_secs(30)), Some(end - Duration::from_secs(32)));
        let open = Window { instance_goes: Termination::Unknown, ..window };
        assert_eq!(open.last_safe_moment(Duration::from_secs(30)), None);
        assert_eq!(open.forced_from(Duration::from_secs(30)), None);
    }

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

    fn soon(start: Instant, respected: Duration) -> Window {
        let instance_goes = Termination::Soon { respected_until: start + respected };
        Window {
            start,
            end: start + Duration::from_secs(600),
            instance_goes,
            margin: MARGIN,
            detaching: Duration::ZERO,
            dead_since: None,
        }
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

    #[test]
    fn when_the_node_of_an_instance_that_is_going_is_silent_nothing_is_respected_any_longer() {
        let (start, grace) = (Instant::now(), Duration::from_secs(30));
        let at = start + Duration::from_secs(20);
        let window = soon(start, Duration::from_secs(120));
        assert_eq!(window.forced_from(grace), Some(start + Duration::from_secs(120)));
        assert_eq!(window.on_silence(at).forced_from(grace), Some(at));
        assert_eq!(window.on_silence(at).on_silence(at + grace), window.on_silence(at));
        assert_eq!(hard(start, 120).on_silence(at), hard(start, 120));
    }

    /// What the rule says of forcing, in whole milliseconds from the start.
    fn forced_by_the_rule(window_ms: u64, asked_ms: u64, margin_ms: u64) -> u64 {
        (window_ms / 2).max(window_ms.saturating_sub(asked_ms + margin_ms))
    }

    fn window(start: Instant, window_ms: u64, margin_ms: u64) -> Window {
        let goes = start + Duration::from_millis(window_ms);
        Window {
            start,
            end: goes,
            instance_goes: Termination::At(goes),
            margin: Duration::from_millis(margin_ms),
            detaching: Duration::ZERO,
            dead_since: None,
        }
    }

    fn given(window: Window, grace: Duration, now: Instant) -> Duration {
        match window.grace(grace, now) {
            Grace::Own => grace,
            Grace::Clamped(given) => given,
        }
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

        #[test]
        fn a_pod_that_is_requested_at_its_last_safe_moment_gets_all_of_its_grace(
            asked_s in 0..1000_u64, more_ms in 0..7_200_000_u64, margin_ms in 0..60_000_u64,
        ) {
            let start = Instant::now();
            let window = window(start, 1000 * asked_s + margin_ms + more_ms, margin_ms);
            let grace = Duration::from_secs(asked_s);
            let moment = window.last_safe_moment(grace).expect("the deadline is hard");
            prop_assert_eq!(window.grace(grace, moment), Grace::Own);
            prop_assert_eq!(moment, start + Duration::from_millis(more_ms), "and it is the last one");
        }

        #[test]
        fn a_tighter_deadline_never_forces_later_and_never_gives_more(
            asked_s in 0..1000_u64, window_ms in 0..1_000_000_u64, less_ms in 0..1_000_000_u64, at_ms in 0..1_000_000_u64,
        ) {
            let start = Instant::now();
            let (grace, at) = (Duration::from_secs(asked_s), start + Duration::from_millis(at_ms));
            let (loose, tight) = (window(start, window_ms, 2000), window(start, window_ms.saturating_sub(less_ms), 2000));
            prop_assert!(tight.forced_from(grace) <= loose.forced_from(grace));
            prop_assert!(tight.last_safe_moment(grace) <= loose.last_safe_moment(grace));
            prop_assert!(given(tight, grace, at) <= given(loose, grace, at).max(LEAST_GRACE));
        }

        #[test]
        fn the_end_of_an_invocation_changes_nothing_before_the_instance_goes(
            asked_s in 0..1000_u64, window_ms in 0..172_800_000_u64, end_ms in 0..172_800_000_u64, at_ms in 0..172_800_000_u64,
        ) {
            let start = Instant::now();
            let (grace, at) = (Duration::from_secs(asked_s), start + Duration::from_millis(at_ms));
            let whole = window(start, window_ms, 2000);
            let cut = Window { end: start + Duration::from_millis(end_ms), ..whole };
            prop_assert_eq!(cut.forced_from(grace), whole.forced_from(grace));
            prop_assert_eq!(cut.grace(grace, at), whole.grace(grace, at));
        }

        #[test]
        fn of_an_instance_that_goes_at_a_time_that_nobody_knows_no_pod_gets_less_than_its_own_grace(
            asked_s in 0..200_000_u64, respected_s in 0..600_u64, at_ms in 0..2_000_000_u64, ago_s in 0..1000_u64,
        ) {
            let start = Instant::now();
            let (grace, at) = (Duration::from_secs(asked_s), start + Duration::from_millis(at_ms));
            let window = soon(start, Duration::from_secs(respected_s));
            prop_assert_eq!(window.grace(grace, at), Grace::Own);
            prop_assert_eq!(window.on_silence(at).grace(grace, at), Grace::Own);
            prop_assert_eq!(window.shortened(deletion(ago_s, asked_s, at), at), None);
            prop_assert_eq!(window.forced_from(grace), Some(start + Duration::from_secs(respected_s)));
        }

        #[test]
        fn while_a_hook_holds_the_instance_nothing_is_clamped_and_what_is_blocked_is_forced_by_its_end(
            asked_s in 0..200_000_u64, window_ms in 0..172_800_000_u64, at_ms in 0..172_800_000_u64,
        ) {
            let start = Instant::now();
            let whole = window(start, window_ms, 2000);
            let soft = Window { instance_goes: Termination::AtTheLatest(whole.end), ..whole };
            let grace = Duration::from_secs(asked_s);
            prop_assert_eq!(soft.forced_from(grace), whole.forced_from(grace));
            prop_assert_eq!(soft.grace(grace, start + Duration::from_millis(at_ms)), Grace::Own);
        }
    }
}
