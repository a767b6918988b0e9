//! Times of planned drains and of undo checks, which uncordon a node that stays in use. Pure.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use spillway_notice::undo_check::UndoCheck;
use spillway_notice::{Deadline, Kind, Notice};
use spillway_settings::Settings;

/// Maximum duration of a drain for a rebalance recommendation.
pub const REBALANCE_WINDOW: Duration = Duration::from_hours(1);
/// Time from the end of `REBALANCE_WINDOW` to the undo check. The drain for a late notice may end 10 s after the window.
const AFTER_THE_WINDOW: Duration = Duration::from_secs(15);
/// Time that a drain for maintenance needs in addition to the grace periods: for blocked pods and for detaching volumes.
const RESERVE: SignedDuration = SignedDuration::from_mins(10);
/// Time between two attempts to begin a postponed drain for maintenance.
const TURN_AFTER: SignedDuration = SignedDuration::from_mins(3);
/// Time between two undo checks of a node.
const CHECK_EVERY: SignedDuration = SignedDuration::from_mins(10);
/// Maximum number of undo checks of a node: one day of checks every 10 minutes.
const MOST_CHECKS: u32 = 144;
/// Maximum number of undo checks after an instance has started: one hour of checks every 10 minutes.
const MOST_TRIES: u32 = 6;

/// Returns the time at which work on the notice begins: at once, or `maintenance_lead` before planned maintenance starts.
pub fn begins(notice: &Notice, settings: &Settings) -> Timestamp {
    let Some(starts) = planned_start(notice) else { return Timestamp::MIN };
    let lead = SignedDuration::try_from(settings.maintenance_lead).unwrap_or(SignedDuration::MAX);
    starts.saturating_sub(lead).unwrap_or(Timestamp::MIN)
}

/// Returns the planned start of the announced maintenance. `None`: the start has passed, or the notice announces no
/// maintenance.
pub fn planned_start(notice: &Notice) -> Option<Timestamp> {
    match (notice.kind, notice.deadline) {
        (Kind::Maintenance, Deadline::Hard(starts)) => Some(starts),
        _ => None,
    }
}

/// Returns the latest time to begin a drain that still gives each pod its grace period before maintenance at `starts`.
pub fn latest_start(starts: Timestamp, longest_grace: Duration) -> Timestamp {
    let grace = SignedDuration::try_from(longest_grace).unwrap_or(SignedDuration::MAX);
    // Blocked pods are forced only in the second half of the drain.
    let time = grace.checked_mul(2).and_then(|time| time.checked_add(RESERVE)).unwrap_or(SignedDuration::MAX);
    starts.saturating_sub(time).unwrap_or(Timestamp::MIN)
}

/// Returns the time of the next attempt to begin a postponed drain: `TURN_AFTER` from now, but not after `latest_start`.
pub fn next_attempt(latest_start: Timestamp, now: Timestamp) -> Timestamp {
    now.saturating_add(TURN_AFTER).unwrap_or(Timestamp::MAX).min(latest_start)
}

/// Returns the time of the first undo check after a drain. Returns `None` if AWS takes the instance, or if a later notice
/// will report that the instance runs again.
pub fn first_check(notice: &Notice, now: Timestamp) -> Option<Timestamp> {
    let soon = next_undo_check(now);
    let reboots = notice.maintenance.as_ref().is_some_and(|maintenance| maintenance.reboots);
    match (notice.kind, notice.deadline) {
        (Kind::Rebalance, _) => {
            Some(notice.time.saturating_add(REBALANCE_WINDOW + AFTER_THE_WINDOW).unwrap_or(Timestamp::MAX))
        }
        (Kind::Maintenance, Deadline::Hard(starts)) if reboots => Some(if now < starts { starts } else { soon }),
        (Kind::Maintenance, Deadline::Unknown) if reboots => Some(soon),
        // Not every group has a hook that reports the replaced volume.
        (Kind::ReplaceRootVolume, _) => Some(soon),
        _ => None,
    }
}

pub fn next_check(kind: Kind, check: &UndoCheck, now: Timestamp) -> Option<Timestamp> {
    let most = if expects_claim(kind) { MOST_CHECKS } else { MOST_TRIES };
    let again = check.next().number < most;
    again.then(|| next_undo_check(now))
}

/// Returns the time of the next undo check: `CHECK_EVERY` from now.
pub fn next_undo_check(now: Timestamp) -> Timestamp {
    now.saturating_add(CHECK_EVERY).unwrap_or(Timestamp::MAX)
}

/// Returns `true` if an undo check for this kind of notice usually finds a claim on the node.
pub fn expects_claim(kind: Kind) -> bool {
    matches!(kind, Kind::Rebalance | Kind::Maintenance | Kind::MaintenanceOver | Kind::ReplaceRootVolume)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use spillway_notice::Maintenance;

    use super::*;
    use crate::test_support::{self, at, settings};

    /// Notice of midnight about maintenance at three.
    fn notice(kind: Kind, reboots: bool) -> Notice {
        Notice {
            time: at("2026-12-24T00:00:00Z"),
            maintenance: Some(Maintenance { id: "M".to_owned(), reboots, starts: None }),
            ..test_support::notice(kind, Deadline::Hard(at("2026-12-24T03:00:00Z")))
        }
    }

    #[test]
    fn maintenance_begins_before_its_start_and_all_else_at_once() {
        let settings = settings(&[("SPILLWAY_MAINTENANCE_LEAD_S", "600")]);
        assert_eq!(begins(&notice(Kind::Maintenance, false), &settings), at("2026-12-24T02:50:00Z"));
        assert_eq!(begins(&notice(Kind::Spot, false), &settings), Timestamp::MIN);
        assert_eq!(planned_start(&notice(Kind::Maintenance, false)), Some(at("2026-12-24T03:00:00Z")));
        assert_eq!(planned_start(&notice(Kind::Spot, false)), None);
        let past = Notice { deadline: Deadline::Unknown, ..notice(Kind::Maintenance, false) };
        assert_eq!(planned_start(&past), None);
        let early = Notice { deadline: Deadline::Hard(Timestamp::MIN), ..past };
        assert_eq!(begins(&early, &settings), Timestamp::MIN);
    }

    #[test]
    fn pace_leaves_twice_the_longest_grace_and_ten_minutes() {
        let ends = |grace_s| latest_start(at("2026-12-24T03:00:00Z"), Duration::from_secs(grace_s));
        assert_eq!(ends(0), at("2026-12-24T02:50:00Z"));
        assert_eq!(ends(1200), at("2026-12-24T02:10:00Z"));
        assert_eq!(ends(u64::MAX), Timestamp::MIN);
    }

    #[test]
    fn waiting_drain_tries_again_before_its_pace_ends() {
        let now = at("2026-12-24T02:00:00Z");
        assert_eq!(next_attempt(Timestamp::MAX, now), at("2026-12-24T02:03:00Z"));
        assert_eq!(next_attempt(at("2026-12-24T02:01:00Z"), now), at("2026-12-24T02:01:00Z"));
    }

    #[test]
    fn undo_check_is_due_only_if_the_node_returns() {
        let first = |notice: &Notice, now| first_check(notice, at(now));
        let reboot = notice(Kind::Maintenance, true);
        assert_eq!(first(&reboot, "2026-12-24T02:00:00Z"), Some(at("2026-12-24T03:00:00Z")));
        assert_eq!(first(&reboot, "2026-12-24T04:00:00Z"), Some(at("2026-12-24T04:10:00Z")), "its start is past");
        assert_eq!(first(&reboot, "2026-12-24T03:00:00Z"), Some(at("2026-12-24T03:10:00Z")), "it starts now");
        let at_any_time = |reboots| Notice { deadline: Deadline::Unknown, ..notice(Kind::Maintenance, reboots) };
        assert_eq!(first(&at_any_time(true), "2026-12-24T02:00:00Z"), Some(at("2026-12-24T02:10:00Z")));
        assert_eq!(first(&at_any_time(false), "2026-12-24T02:00:00Z"), None);
        let root_volume = notice(Kind::ReplaceRootVolume, false);
        assert_eq!(first(&root_volume, "2026-12-24T02:00:00Z"), Some(at("2026-12-24T02:10:00Z")));
        assert_eq!(first(&notice(Kind::Maintenance, false), "2026-12-24T02:00:00Z"), None);
        assert_eq!(first(&notice(Kind::Spot, false), "2026-12-24T02:00:00Z"), None);
    }

    #[test]
    fn check_after_a_rebalance_counts_from_the_notice() {
        let rebalance = notice(Kind::Rebalance, false);
        for now in ["2026-12-24T00:00:01Z", "2026-12-24T00:09:00Z"] {
            assert_eq!(first_check(&rebalance, at(now)), Some(at("2026-12-24T01:00:15Z")));
        }
    }

    #[test]
    fn unreturned_node_is_checked_every_ten_minutes_for_a_day() {
        let check = |number| UndoCheck { notice: Value::Null, instance: String::new(), number };
        let now = at("2026-12-24T03:00:00Z");
        let next = |number| next_check(Kind::Maintenance, &check(number), now);
        assert_eq!(next(0), Some(at("2026-12-24T03:10:00Z")));
        let followed = (0..1_000).take_while(|number| next(*number).is_some());
        let checks = 1 + i64::try_from(followed.count()).unwrap();
        assert_eq!(checks * 10, 24 * 60, "minutes");
        assert_eq!(next(u32::MAX), None);
    }

    #[test]
    fn unreachable_cluster_is_tried_for_an_hour_without_a_claim() {
        let mut check = UndoCheck { notice: Value::Null, instance: String::new(), number: 0 };
        let (mut now, mut tries) = (at("2026-12-24T03:00:00Z"), 1);
        while let Some(next) = next_check(Kind::Running, &check, now) {
            (now, tries, check) = (next, tries + 1, check.next());
        }
        assert_eq!((tries, now), (6, at("2026-12-24T03:50:00Z")));
    }
}
