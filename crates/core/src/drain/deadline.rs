//! How long there is, and what that means for a pod. Pure: instants in, durations out.
//!
//! * `grace`: how much of its grace a pod is given
//! * `forcing`: when a pod is asked, and when it is deleted although something blocks it
//!
//! The rule, for an instance that goes at a known time whatever we do: a pod leaves by eviction,
//! with its own grace period as long as that fits and with what is left when it does not. A
//! PodDisruptionBudget is respected until that would cost the pod its clean shutdown; then the pod is
//! deleted. A do-not-disrupt annotation ends before, so that a budget has time. The end of a hook's
//! longest wait is such a time, because the instance goes then as well; but it clamps no grace.
//!
//! An instance that is going at a time that nobody knows gives no reason to take grace from a pod: a replacement starts when
//! the deletion is accepted, however long the grace. What blocks a pod is respected for a time that is set.

mod forcing;
mod grace;

use std::time::Duration;

use tokio::time::Instant;

pub use forcing::LEAST_PATIENCE;
pub use grace::{Deletion, Grace};

/// What is kept before the instance goes: a kubelet tells the API server within a second or so that its pods have stopped,
/// and the drain has yet to hear of it.
pub const MARGIN: Duration = Duration::from_secs(2);

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

impl Window {
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
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::grace::LEAST_GRACE;
    use super::*;

    pub(super) fn hard(from: Instant, seconds: u64) -> Window {
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

    pub(super) fn soon(start: Instant, respected: Duration) -> Window {
        let instance_goes = Termination::Soon { respected_until: start + respected };
        Window { instance_goes, ..hard(start, 600) }
    }

    pub(super) fn window(start: Instant, window_ms: u64, margin_ms: u64) -> Window {
        let end = start + Duration::from_millis(window_ms);
        let margin = Duration::from_millis(margin_ms);
        Window { end, instance_goes: Termination::At(end), margin, ..hard(start, 0) }
    }

    pub(super) fn given(window: Window, grace: Duration, now: Instant) -> Duration {
        match window.grace(grace, now) {
            Grace::Own => grace,
            Grace::Clamped(given) => given,
        }
    }

    /// A deletion of so long ago with that grace.
    pub(super) fn deletion(ago_s: u64, grace_s: u64, now: Instant) -> Deletion {
        let since = now - Duration::from_secs(ago_s);
        Deletion { since, by: since + Duration::from_secs(grace_s) }
    }

    #[test]
    fn a_hook_that_is_held_clamps_nothing_and_forces_in_time_for_its_longest_wait() {
        let now = Instant::now();
        let end = now + Duration::from_secs(600);
        let window = Window { instance_goes: Termination::AtTheLatest(end), ..hard(now, 600) };
        assert_eq!(window.grace(Duration::MAX, now), Grace::Own);
        assert_eq!(window.shortened(deletion(0, 600, now), now), None);
        assert_eq!(window.forced_from(Duration::from_secs(30)), Some(end - Duration::from_secs(32)));
        assert_eq!(window.last_safe_moment(Duration::from_secs(30)), Some(end - Duration::from_secs(32)));
        let open = Window { instance_goes: Termination::Unknown, ..window };
        assert_eq!(open.last_safe_moment(Duration::from_secs(30)), None);
        assert_eq!(open.forced_from(Duration::from_secs(30)), None);
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

    proptest! {
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
