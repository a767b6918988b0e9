//! Checks whether a notice, or EC2's description of an instance, is outdated. Pure.

use jiff::{SignedDuration, Timestamp};
use spillway_notice::{Deadline, Kind, Notice};
use spillway_settings::Settings;

use super::Reason;
use crate::instance::{Instance, InstanceState};

/// Time after a notice in which `DescribeInstances` may still return an older state of the instance.
const CAUGHT_UP_AFTER: SignedDuration = SignedDuration::from_mins(1);

/// Maximum time from a notice's deadline until EC2 takes the instance. EC2 usually needs a few minutes.
const GONE_AFTER: SignedDuration = SignedDuration::from_mins(10);

/// Returns `true` if EC2's description of the instance contradicts the notice and has to be read again (eventual consistency).
pub fn is_behind(kind: Kind, described: Option<&Instance>, settings: &Settings) -> bool {
    match (kind, described.map(|instance| instance.state)) {
        (Kind::Launch | Kind::LaunchIntoWarmPool | Kind::LaunchFromWarmPool, None) => true,
        (Kind::Stopped | Kind::Terminated, Some(state)) => {
            settings.taints.out_of_service && state != InstanceState::Down
        }
        (Kind::Running | Kind::LaunchFromWarmPool, Some(state)) => state != InstanceState::Up,
        _ => false,
    }
}

/// Returns `true` if EC2's description may still be older than the notice.
pub(super) fn is_fresh(notice: &Notice, now: Timestamp) -> bool {
    now.duration_since(notice.time) <= CAUGHT_UP_AFTER
}

/// Returns the reason to ignore an old notice whose instance runs again, or still runs ten minutes after the deadline.
pub(super) fn is_over(notice: &Notice, instance: &Instance, now: Timestamp) -> Option<Reason> {
    if instance.state != InstanceState::Up {
        return None;
    }
    let is_going = matches!(notice.kind, Kind::Stopping | Kind::ShuttingDown);
    match notice.deadline {
        _ if is_going && !is_fresh(notice, now) => Some(Reason::RunsAgain(instance.id.clone())),
        Deadline::Hard(at) if GONE_AFTER < now.duration_since(at) => Some(Reason::StillRuns(instance.id.clone())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{self, instance, settings};

    #[test]
    fn old_stopping_notice_of_a_running_instance_is_ignored() {
        let is_over = |kind, state, age_s| {
            let notice = test_support::notice(kind, Deadline::Unknown);
            is_over(&notice, &Instance { state, ..instance() }, notice.time + SignedDuration::from_secs(age_s))
                .is_some()
        };
        for kind in [Kind::Stopping, Kind::ShuttingDown] {
            assert!(is_over(kind, InstanceState::Up, 61));
            assert!(!is_over(kind, InstanceState::Up, 60), "EC2's answer may be behind");
            assert!(!is_over(kind, InstanceState::GoingDown, 180));
            assert!(!is_over(kind, InstanceState::Down, 180), "pods still need their replacements");
        }
        assert!(!is_over(Kind::Spot, InstanceState::Up, 180), "the instance runs until EC2 takes it");
    }

    #[test]
    fn instance_that_runs_ten_minutes_past_its_deadline_is_left() {
        let is_over = |state, late_s| {
            let notice = test_support::notice(Kind::Spot, Deadline::Hard(Timestamp::UNIX_EPOCH));
            let now = Timestamp::UNIX_EPOCH + SignedDuration::from_secs(late_s);
            is_over(&notice, &Instance { state, ..instance() }, now).is_some()
        };
        assert!(!is_over(InstanceState::Up, 600) && is_over(InstanceState::Up, 601));
        assert!(!is_over(InstanceState::GoingDown, 601));
    }

    fn behind(taint: &str, kind: Kind, state: Option<InstanceState>) -> bool {
        let settings = settings(&[("SPILLWAY_TAINTS", taint)]);
        let described = state.map(|state| Instance { state, ..instance() });
        is_behind(kind, described.as_ref(), &settings)
    }

    #[test]
    fn answer_that_contradicts_the_notice_is_behind() {
        assert!(behind("", Kind::Launch, None));
        for kind in [Kind::Running, Kind::LaunchFromWarmPool] {
            assert!(behind("", kind, Some(InstanceState::Down)));
        }
        for kind in [Kind::Stopped, Kind::Terminated] {
            assert!(behind("out-of-service", kind, Some(InstanceState::GoingDown)));
            assert!(!behind("out-of-service", kind, Some(InstanceState::Down)));
            assert!(!behind("", kind, Some(InstanceState::GoingDown)), "no decision depends on the state");
        }
        assert!(!behind("out-of-service", Kind::Launch, Some(InstanceState::Up)));
        assert!(!behind("out-of-service", Kind::Running, Some(InstanceState::Up)));
        assert!(!behind("out-of-service", Kind::Terminated, None), "EC2 forgets instances after an hour");
        assert!(!behind("out-of-service", Kind::Running, None), "no node to uncordon");
        assert!(!behind("out-of-service", Kind::Spot, None));
    }
}
