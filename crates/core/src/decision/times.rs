//! When: what begins later than its notice comes, and when it is looked whether a node may be given back. Pure.

use std::num::NonZeroUsize;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use spillway_notice::undo_check::UndoCheck;
use spillway_notice::{Deadline, InstanceId, Kind, Notice};
use spillway_settings::Settings;

/// How long a rebalance recommendation drains or cordons a node.
pub const REBALANCE_WINDOW: Duration = Duration::from_hours(1);
/// A drain of a rebalance recommendation has ended by then, and a late one too (`LEAST_WINDOW`).
const AFTER_THE_WINDOW: Duration = Duration::from_secs(15);
/// At least so long before maintenance starts nothing brakes its drain any more: pods have their grace, and budgets work.
const UNBRAKED: SignedDuration = SignedDuration::from_mins(10);
/// How long a drain that had to give way waits at least until it tries again, and by how much more at most.
const TURN_AFTER: SignedDuration = SignedDuration::from_mins(3);
/// How long it takes from one look at a node that is to come back to the next.
const CHECK_EVERY: SignedDuration = SignedDuration::from_mins(10);
/// How often it is looked: for a day. EC2's windows for a reboot are of hours.
const MOST_CHECKS: u32 = 144;
/// How often a cluster is tried that cannot be reached, for an instance that only runs again: for an hour. A control plane that
/// is updated is away for minutes.
const MOST_TRIES: u32 = 6;

/// When to begin: at once, but for what is announced weeks ahead. That begins within the first half of its lead, each instance
/// at its own time, so that those of one notice begin one after the other.
pub fn begins(notice: &Notice, settings: &Settings) -> Timestamp {
    let Some((starts, lead)) = ahead(notice, settings) else { return Timestamp::MIN };
    let spread = (lead / 2).min(lead - unbraked(lead));
    starts.saturating_sub(lead - offset(&notice.instance, spread)).unwrap_or(Timestamp::MIN)
}

/// What keeps a drain that can wait from beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Brake {
    /// How many nodes of a cluster, group and zone may drain at once.
    pub at_once: NonZeroUsize,
    /// From when on nothing keeps it from beginning.
    pub until: Timestamp,
}

/// The brake of announced maintenance. `None`: no setting wants one, the maintenance's start is past, or it is another notice.
pub fn brake(notice: &Notice, settings: &Settings) -> Option<Brake> {
    let (starts, lead) = ahead(notice, settings)?;
    let until = starts.saturating_sub(unbraked(lead)).unwrap_or(Timestamp::MIN);
    Some(Brake { at_once: settings.maintenance_at_once?, until })
}

/// When a drain tries again to begin that had to give way to others: in three to six minutes, and in time.
pub fn next_turn(notice: &Notice, braked_until: Timestamp, now: Timestamp) -> Timestamp {
    let pause = TURN_AFTER + offset(&notice.instance, TURN_AFTER);
    now.saturating_add(pause).unwrap_or(Timestamp::MAX).min(braked_until)
}

/// When announced maintenance starts, and the lead of its drain.
fn ahead(notice: &Notice, settings: &Settings) -> Option<(Timestamp, SignedDuration)> {
    match (notice.kind, notice.deadline) {
        (Kind::Maintenance, Deadline::Hard(starts)) => {
            Some((starts, SignedDuration::try_from(settings.maintenance_lead).unwrap_or(SignedDuration::MAX)))
        }
        _ => None,
    }
}

/// The end of a lead, in which nothing brakes.
fn unbraked(lead: SignedDuration) -> SignedDuration {
    (lead / 4).max(UNBRAKED).min(lead)
}

/// The instance's own part of a time, in whole seconds: the same in each invocation, and another for most other instances. What a sum of their
/// characters hardly tells apart (FNV-1a) is mixed once more (as `MurmurHash3` ends).
fn offset(instance: &InstanceId, of: SignedDuration) -> SignedDuration {
    let sum = instance
        .as_str()
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    let mixed = (sum ^ (sum >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    SignedDuration::from_secs((of * i32::from(u16::try_from(mixed >> 48).unwrap_or(0)) / 65_536).as_secs())
}

/// When to look for the first time whether a node that was taken out for such a notice may be given back.
/// `None`: never, because the instance goes, or because a notice will say that it is back.
pub fn first_check(notice: &Notice, now: Timestamp) -> Option<Timestamp> {
    let soon = look_again(now);
    let reboots = notice.maintenance.as_ref().is_some_and(|maintenance| maintenance.reboots);
    match (notice.kind, notice.deadline) {
        (Kind::Rebalance, _) => {
            Some(notice.time.saturating_add(REBALANCE_WINDOW + AFTER_THE_WINDOW).unwrap_or(Timestamp::MAX))
        }
        (Kind::Maintenance, Deadline::Hard(starts)) if reboots => Some(if now < starts { starts } else { soon }),
        (Kind::Maintenance, Deadline::Unknown) if reboots => Some(soon),
        // The group tells when the volume is replaced; but not everybody has a hook for that.
        (Kind::ReplaceRootVolume, _) => Some(soon),
        _ => None,
    }
}

/// When to look again, if at all.
pub fn next_check(kind: Kind, check: &UndoCheck, now: Timestamp) -> Option<Timestamp> {
    let most = if follows_a_claim(kind) { MOST_CHECKS } else { MOST_TRIES };
    let again = check.next().number < most;
    again.then(|| look_again(now))
}

/// When to look again at a node that is not back, or that a late notice may have claimed since.
pub fn look_again(now: Timestamp) -> Timestamp {
    now.saturating_add(CHECK_EVERY).unwrap_or(Timestamp::MAX)
}

/// Whether something is over for which a node was claimed, as a rule; and not something that every instance does that starts.
pub fn follows_a_claim(kind: Kind) -> bool {
    matches!(kind, Kind::Rebalance | Kind::Maintenance | Kind::MaintenanceOver | Kind::ReplaceRootVolume)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;
    use spillway_notice::Maintenance;

    use super::*;
    use crate::test_support::{self, at, settings};

    /// A notice of midnight about maintenance at three.
    fn notice(kind: Kind, reboots: bool) -> Notice {
        Notice {
            time: at("2026-12-24T00:00:00Z"),
            maintenance: Some(Maintenance { id: "M".to_owned(), reboots, starts: None }),
            ..test_support::notice(kind, Deadline::Hard(at("2026-12-24T03:00:00Z")))
        }
    }

    /// The same for the instance of that number.
    fn of_instance(number: u32) -> Notice {
        let instance = InstanceId::parse(&format!("i-{number:017x}")).unwrap();
        Notice { instance, ..notice(Kind::Maintenance, false) }
    }

    #[test]
    fn maintenance_begins_its_lead_before_it_starts_and_all_else_at_once() {
        let settings = settings(&[("SPILLWAY_MAINTENANCE_LEAD_S", "600")]);
        assert_eq!(begins(&notice(Kind::Maintenance, false), &settings), at("2026-12-24T02:50:00Z"));
        assert_eq!(begins(&notice(Kind::Spot, false), &settings), Timestamp::MIN);
        assert_eq!(brake(&notice(Kind::Spot, false), &settings), None);
    }

    #[test]
    fn the_drains_of_one_maintenance_begin_in_the_first_half_of_the_lead_and_not_together() {
        let settings = settings(&[("SPILLWAY_MAINTENANCE_LEAD_S", "3600")]);
        let begins: Vec<_> = (0..40).map(|n| begins(&of_instance(n), &settings)).collect();
        let (first, last) = (*begins.iter().min().unwrap(), *begins.iter().max().unwrap());
        assert!(at("2026-12-24T02:00:00Z") <= first && last < at("2026-12-24T02:30:00Z"), "{first} to {last}");
        let most = begins
            .iter()
            .map(|from| begins.iter().filter(|at| **at >= *from && at.duration_since(*from).as_mins() < 3).count());
        assert!(most.max().unwrap() <= 10, "of forty no more than ten within three minutes of the thirty");
        assert_eq!(super::begins(&of_instance(7), &settings), begins[7], "each time the same");
        assert_eq!(begins[7], at("2026-12-24T02:19:13Z"), "and in each version, for an update finds the schedule");
    }

    #[test]
    fn nothing_brakes_in_the_last_quarter_of_the_lead_nor_in_the_last_ten_minutes() {
        let until = |lead: &str| {
            let settings = settings(&[("SPILLWAY_MAINTENANCE_LEAD_S", lead)]);
            let notice = notice(Kind::Maintenance, false);
            let until = brake(&notice, &settings).unwrap().until;
            assert!(begins(&notice, &settings) <= until, "{lead}");
            (until, next_turn(&notice, until, until - SignedDuration::from_secs(1)))
        };
        for (lead, time) in [("7200", "02:30"), ("3600", "02:45"), ("900", "02:50"), ("600", "02:50"), ("60", "02:59")]
        {
            let time = at(&format!("2026-12-24T{time}:00Z"));
            assert_eq!(until(lead), (time, time), "{lead}");
        }
    }

    #[test]
    fn a_drain_that_gave_way_tries_again_in_three_to_six_minutes_and_not_with_all_others() {
        let now = at("2026-12-24T02:00:00Z");
        let turns = (0..40).map(|n| next_turn(&of_instance(n), Timestamp::MAX, now).duration_since(now).as_secs());
        let turns: BTreeSet<_> = turns.collect();
        assert!(turns.iter().all(|after_s| (180..360).contains(after_s)), "{turns:?}");
        assert!(turns.len() > 30, "{turns:?}");
    }

    #[test]
    fn a_lead_from_before_the_calendar_is_at_once() {
        let mut early = notice(Kind::Maintenance, false);
        early.deadline = Deadline::Hard(Timestamp::MIN);
        assert_eq!(begins(&early, &settings(&[])), Timestamp::MIN);
    }

    #[test]
    fn a_reboot_is_looked_for_from_its_start_on_and_what_is_not_coming_back_is_not() {
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
    fn a_rebalance_is_looked_after_by_the_clock_of_its_notice_so_that_a_retry_moves_nothing() {
        let rebalance = notice(Kind::Rebalance, false);
        for now in ["2026-12-24T00:00:01Z", "2026-12-24T00:09:00Z"] {
            assert_eq!(first_check(&rebalance, at(now)), Some(at("2026-12-24T01:00:15Z")));
        }
    }

    #[test]
    fn a_node_that_does_not_come_back_is_looked_for_every_ten_minutes_for_a_day() {
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
    fn a_cluster_that_cannot_be_reached_is_tried_for_an_hour_when_nobody_claimed_a_node() {
        let mut check = UndoCheck { notice: Value::Null, instance: String::new(), number: 0 };
        let (mut now, mut tries) = (at("2026-12-24T03:00:00Z"), 1);
        while let Some(next) = next_check(Kind::Running, &check, now) {
            (now, tries, check) = (next, tries + 1, check.next());
        }
        assert_eq!((tries, now), (6, at("2026-12-24T03:50:00Z")));
    }
}
