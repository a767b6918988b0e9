//! Computes a pod's grace period and last safe moment from the time at which AWS takes (stops or terminates) the instance. Pure.
//!
//! A PDB is respected until the pod's last safe moment, after which the pod could not shut down cleanly. Then the pod is deleted.
//! * If AWS takes the instance at a known time, grace periods are shortened to the time left.
//! * If a lifecycle hook holds the instance, it is held for the time that the hook's timeouts allow, but not longer than
//!   `hook_max_wait`. No grace period is shortened.
//! * If AWS takes the instance at an unknown time, PDBs are respected for a fixed time. No grace period is shortened.
//! * If AWS may keep the instance, PDBs are respected until the drain ends.

mod forcing;
mod grace;

use std::time::Duration;

use tokio::time::Instant;

pub use forcing::LEAST_EVICTION_TIMEOUT;
pub use grace::{Deletion, Grace};

/// Time between the stop of the last pods and the stop of the instance. In this time, the kubelet reports the stopped pods.
pub const MARGIN: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    pub start: Instant,
    /// Time at which the drain ends even if pods remain.
    pub end: Instant,
    pub instance_goes: Termination,
    /// Time for the kubelet to report stopped pods before AWS takes the instance.
    pub margin: Duration,
    /// Time for detaching a stopped pod's volumes. Zero if no lifecycle hook holds the instance.
    pub detaching: Duration,
    /// Time from which the node counts as dead. If a lifecycle hook holds the instance, PDBs are ignored from this time on.
    pub dead_since: Option<Instant>,
}

/// Time at which AWS stops or terminates the instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Termination {
    /// AWS stops or terminates the instance at this time.
    At(Instant),
    /// AWS terminates the instance when the hook's lifecycle action is completed, at the latest at this time.
    AtTheLatest(Instant),
    /// AWS stops or terminates the instance soon, at an unknown time. PDBs are respected until `respected_until`.
    SoonAtUnknownTime { respected_until: Instant },
    /// AWS may keep the instance, so a pod that a PDB blocks is never deleted.
    MayStay,
}

impl Termination {
    /// Returns the fixed time at which AWS stops or terminates the instance. Grace periods are shortened to end before this time.
    pub fn hard(self) -> Option<Instant> {
        match self {
            Self::At(at) => Some(at),
            Self::AtTheLatest(_) | Self::SoonAtUnknownTime { .. } | Self::MayStay => None,
        }
    }

    /// Returns the latest time at which AWS takes the instance. `None`: this time is unknown.
    pub fn latest(self) -> Option<Instant> {
        match self {
            Self::At(at) | Self::AtTheLatest(at) => Some(at),
            Self::SoonAtUnknownTime { .. } | Self::MayStay => None,
        }
    }
}

impl Window {
    /// Returns the window that applies when the kubelet stops reporting. If AWS takes the instance at an unknown time, PDBs
    /// are ignored from `now` on.
    #[must_use]
    pub fn on_silence(self, now: Instant) -> Self {
        match self.instance_goes {
            Termination::SoonAtUnknownTime { respected_until } => Self {
                instance_goes: Termination::SoonAtUnknownTime { respected_until: respected_until.min(now) },
                ..self
            },
            _ => self,
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::grace::LEAST_GRACE;
    use super::*;

    pub(in crate::drain) fn hard(from: Instant, seconds: u64) -> Window {
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

    pub(in crate::drain) fn soon(start: Instant, respected_s: u64) -> Window {
        let instance_goes =
            Termination::SoonAtUnknownTime { respected_until: start + Duration::from_secs(respected_s) };
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

    /// Creates a deletion that was requested `ago_s` seconds ago, with a grace period of `grace_s` seconds.
    pub(super) fn deletion(ago_s: u64, grace_s: u64, now: Instant) -> Deletion {
        let since = now - Duration::from_secs(ago_s);
        Deletion { since, by: since + Duration::from_secs(grace_s) }
    }

    #[test]
    fn held_hook_clamps_nothing_and_forces_before_its_end() {
        let now = Instant::now();
        let end = now + Duration::from_secs(600);
        let window = Window { instance_goes: Termination::AtTheLatest(end), ..hard(now, 600) };
        assert_eq!(window.grace(Duration::MAX, now), Grace::Own);
        assert_eq!(window.shortened(deletion(0, 600, now), now), None);
        assert_eq!(window.forced_from(Duration::from_secs(30)), Some(end - Duration::from_secs(32)));
        assert_eq!(window.last_safe_moment(Duration::from_secs(30)), Some(end - Duration::from_secs(32)));
        let open = Window { instance_goes: Termination::MayStay, ..window };
        assert_eq!(open.last_safe_moment(Duration::from_secs(30)), None);
        assert_eq!(open.forced_from(Duration::from_secs(30)), None);
    }

    #[test]
    fn silent_node_of_a_going_instance_ends_all_respect() {
        let (start, grace) = (Instant::now(), Duration::from_secs(30));
        let at = start + Duration::from_secs(20);
        let window = soon(start, 120);
        assert_eq!(window.forced_from(grace), Some(start + Duration::from_secs(120)));
        assert_eq!(window.on_silence(at).forced_from(grace), Some(at));
        assert_eq!(window.on_silence(at).on_silence(at + grace), window.on_silence(at));
        assert_eq!(hard(start, 120).on_silence(at), hard(start, 120));
    }

    proptest! {
        #[test]
        fn pod_requested_at_its_last_safe_moment_gets_its_grace(
            grace_s in 0..1000_u64, more_ms in 0..7_200_000_u64, margin_ms in 0..60_000_u64,
        ) {
            let start = Instant::now();
            let window = window(start, 1000 * grace_s + margin_ms + more_ms, margin_ms);
            let grace = Duration::from_secs(grace_s);
            let moment = window.last_safe_moment(grace).expect("the deadline is hard");
            prop_assert_eq!(window.grace(grace, moment), Grace::Own);
            prop_assert_eq!(moment, start + Duration::from_millis(more_ms), "not earlier than necessary");
        }

        #[test]
        fn tighter_deadline_never_forces_later_nor_gives_more_grace(
            grace_s in 0..1000_u64, window_ms in 0..1_000_000_u64, less_ms in 0..1_000_000_u64, at_ms in 0..1_000_000_u64,
        ) {
            let start = Instant::now();
            let (grace, at) = (Duration::from_secs(grace_s), start + Duration::from_millis(at_ms));
            let (loose, tight) = (window(start, window_ms, 2000), window(start, window_ms.saturating_sub(less_ms), 2000));
            prop_assert!(tight.forced_from(grace) <= loose.forced_from(grace));
            prop_assert!(tight.last_safe_moment(grace) <= loose.last_safe_moment(grace));
            prop_assert!(given(tight, grace, at) <= given(loose, grace, at).max(LEAST_GRACE));
        }

        #[test]
        fn end_of_an_invocation_changes_no_deadline(
            grace_s in 0..1000_u64, window_ms in 0..172_800_000_u64, end_ms in 0..172_800_000_u64, at_ms in 0..172_800_000_u64,
        ) {
            let start = Instant::now();
            let (grace, at) = (Duration::from_secs(grace_s), start + Duration::from_millis(at_ms));
            let whole = window(start, window_ms, 2000);
            let cut = Window { end: start + Duration::from_millis(end_ms), ..whole };
            prop_assert_eq!(cut.forced_from(grace), whole.forced_from(grace));
            prop_assert_eq!(cut.grace(grace, at), whole.grace(grace, at));
        }

        #[test]
        fn unknown_end_never_shortens_a_grace(
            grace_s in 0..200_000_u64, respected_s in 0..600_u64, at_ms in 0..2_000_000_u64, ago_s in 0..1000_u64,
        ) {
            let start = Instant::now();
            let (grace, at) = (Duration::from_secs(grace_s), start + Duration::from_millis(at_ms));
            let window = soon(start, respected_s);
            prop_assert_eq!(window.grace(grace, at), Grace::Own);
            prop_assert_eq!(window.on_silence(at).grace(grace, at), Grace::Own);
            prop_assert_eq!(window.shortened(deletion(ago_s, grace_s, at), at), None);
            prop_assert_eq!(window.forced_from(grace), Some(start + Duration::from_secs(respected_s)));
        }
    }
}
