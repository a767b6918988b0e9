//! Which drains can wait, so that they leave invocations to those that cannot; and for how long such a drain is parked. Pure.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use spillway_notice::{Deadline, Kind, Notice};
use spillway_settings::{Policy, Settings};

use crate::decision::{our_hook, switch_of};

/// A drain that has less time than this goes through no queue.
const LEAST_TIME: SignedDuration = SignedDuration::from_mins(10);
/// A drain is not parked any more when a pod is to be forced, or its time is up, so soon: two minutes, and the time until it would
/// have been looked at again.
const URGENT_BEFORE: SignedDuration = SignedDuration::from_mins(3);
/// How long a drain is parked: with the time that it takes to be looked at, and to wait for that, less than a minute.
const PARKED_FOR: Duration = Duration::from_secs(45);
/// A message that comes later than this had to wait for an invocation.
const LATE: SignedDuration = SignedDuration::from_secs(3);

/// Whether the drain of a notice can wait: a hook of ours holds its instance, it is planned, or nothing is known to happen.
pub fn can_wait(notice: &Notice, settings: &Settings, now: Timestamp) -> bool {
    let has_time = match (notice.kind, notice.deadline) {
        (Kind::Terminate | Kind::ReturnToWarmPool | Kind::ReplaceRootVolume, Deadline::HeldByHook) => {
            let longest = SignedDuration::try_from(settings.hook_max_wait).unwrap_or(SignedDuration::MAX);
            our_hook(notice, settings).is_some() && longest >= LEAST_TIME
        }
        (Kind::Maintenance, Deadline::Hard(at)) => at.duration_since(now) >= LEAST_TIME,
        (Kind::Rebalance, Deadline::Open) => true,
        _ => false,
    };
    has_time && !settings.dry_run && switch_of(notice.kind, settings).policy(settings) == Policy::Drain
}

/// Whether a drain cannot wait any more: something is to be forced soon, or its time is nearly up.
pub fn is_urgent(forced_from: Option<Timestamp>, limit: Timestamp, now: Timestamp) -> bool {
    let first = forced_from.map_or(limit, |at| at.min(limit));
    first.duration_since(now) < URGENT_BEFORE
}

/// How long a drain is parked; with a hook never past the next heartbeat.
pub fn parked_for(between_heartbeats: Option<Duration>) -> Duration {
    between_heartbeats.map_or(PARKED_FOR, |between| PARKED_FOR.min(between / 2))
}

/// Whether invocations are short for drains that can wait, by when a message was due and when it came.
pub fn are_short(due: Timestamp, came: Timestamp) -> bool {
    came.duration_since(due) > LATE
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{at, hook, notice, settings};

    const NOW: &str = "2026-11-25T12:00:00Z";

    fn waits(kind: Kind, deadline: Deadline, variables: &[(&str, &str)]) -> bool {
        let mut notice = notice(kind, deadline);
        notice.hook = (deadline == Deadline::HeldByHook).then(|| hook("spillway"));
        can_wait(&notice, &settings(variables), at(NOW))
    }

    #[test]
    fn what_a_hook_holds_is_planned_or_only_recommended_can_wait() {
        for kind in [Kind::Terminate, Kind::ReturnToWarmPool, Kind::ReplaceRootVolume] {
            assert!(waits(kind, Deadline::HeldByHook, &[]), "{kind:?}");
        }
        assert!(waits(Kind::Maintenance, Deadline::Hard(at("2026-11-25T12:10:00Z")), &[]));
        assert!(waits(Kind::Rebalance, Deadline::Open, &[("SPILLWAY_DRAIN_ON", "rebalance")]));
    }

    #[test]
    fn what_has_a_clock_or_is_over_at_once_waits_behind_nothing() {
        let soon = Deadline::Hard(at("2026-11-25T12:02:00Z"));
        for kind in [Kind::Spot, Kind::CapacityReservation, Kind::CapacityBlock, Kind::Maintenance] {
            assert!(!waits(kind, soon, &[]), "{kind:?}");
        }
        for (kind, deadline) in [
            (Kind::Stopping, Deadline::Unknown),
            (Kind::Maintenance, Deadline::Unknown),
            (Kind::Running, Deadline::Open),
            (Kind::Launch, Deadline::HeldByHook),
        ] {
            assert!(!waits(kind, deadline, &[("SPILLWAY_LAUNCH", "CONTINUE")]), "{kind:?}");
        }
        for variables in [
            [("SPILLWAY_HOOK_MAX_WAIT_S", "599")],
            [("SPILLWAY_HOOKS", "another")],
            [("SPILLWAY_DRAIN_ON", "spot")],
            [("SPILLWAY_DRY_RUN", "true")],
        ] {
            assert!(!waits(Kind::Terminate, Deadline::HeldByHook, &variables), "{variables:?}");
        }
    }

    #[test]
    fn a_drain_is_urgent_two_minutes_before_a_pod_is_forced_whenever_it_would_be_looked_at_again() {
        let urgent = |forced_from, limit| is_urgent(forced_from, at(limit), at(NOW));
        assert!(!urgent(Some(at("2026-11-25T12:03:00Z")), "2026-11-25T13:00:00Z"));
        assert!(urgent(Some(at("2026-11-25T12:02:59Z")), "2026-11-25T13:00:00Z"));
        assert!(!urgent(None, "2026-11-25T12:03:00Z"));
        assert!(urgent(None, "2026-11-25T12:02:59Z"));
    }

    #[test]
    fn a_message_that_comes_more_than_three_seconds_late_had_to_wait_for_an_invocation() {
        assert!(!are_short(at(NOW), at("2026-11-25T11:59:00Z")));
        assert!(!are_short(at(NOW), at("2026-11-25T12:00:03Z")));
        assert!(are_short(at(NOW), at("2026-11-25T12:00:03.001Z")));
    }

    #[test]
    fn a_parked_drain_is_looked_at_within_a_minute_and_before_its_next_heartbeat() {
        assert_eq!(parked_for(None), Duration::from_secs(45));
        assert_eq!(parked_for(Some(Duration::from_mins(30))), Duration::from_secs(45));
        assert_eq!(parked_for(Some(Duration::from_secs(15))), Duration::from_millis(7_500));
    }
}
