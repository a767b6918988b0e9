//! Whether what EC2 says of an instance is older than its notice, or newer. Pure.

use jiff::{SignedDuration, Timestamp};
use spillway_notice::{Deadline, Kind, Notice};
use spillway_settings::Settings;

use super::Reason;
use crate::instance::{Instance, InstanceState};

/// EC2's eventual consistency: a minute after a notice, `DescribeInstances` is up to date.
const CAUGHT_UP_AFTER: SignedDuration = SignedDuration::from_mins(1);

/// EC2 takes an instance at its deadline, or a few minutes later.
const GONE_AFTER: SignedDuration = SignedDuration::from_mins(10);

/// Whether EC2's answer contradicts the notice, and may not have caught up with it: what it describes is "eventually
/// consistent" (EC2 developer guide). Where nothing hangs on it, it is not.
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

/// Returns `true` if EC2 may not yet describe the state that the notice names.
pub(super) fn is_fresh(notice: &Notice, now: Timestamp) -> bool {
    now.duration_since(notice.time) <= CAUGHT_UP_AFTER
}

/// Why a notice is about a state of its instance that is no more, if it is: delivered late, or tried again, it finds the
/// instance running again. Stopping and starting may take less than the minutes after which Lambda tries again.
pub(super) fn is_over(notice: &Notice, instance: &Instance, now: Timestamp) -> Option<Reason> {
    if instance.state != InstanceState::Up {
        return None;
    }
    let is_going = matches!(notice.kind, Kind::Stopping | Kind::ShuttingDown);
    match notice.deadline {
        _ if is_going && !is_fresh(notice, now) => Some(Reason::RunsAgain(instance.id.to_string())),
        Deadline::Hard(at) if GONE_AFTER < now.duration_since(at) => Some(Reason::StillRuns(instance.id.to_string())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{self, instance, settings};

    #[test]
    fn a_stopping_that_is_old_is_over_when_the_instance_runs_and_a_new_one_is_believed() {
        let is_over = |kind, state, age_s| {
            let notice = test_support::notice(kind, Deadline::Unknown);
            is_over(&notice, &Instance { state, ..instance() }, notice.time + SignedDuration::from_secs(age_s))
                .is_some()
        };
        for kind in [Kind::Stopping, Kind::ShuttingDown] {
            assert!(is_over(kind, InstanceState::Up, 61));
            assert!(!is_over(kind, InstanceState::Up, 60), "EC2's answer may be behind");
            assert!(!is_over(kind, InstanceState::GoingDown, 180));
            assert!(!is_over(kind, InstanceState::Down, 180), "its pods are to be replaced");
        }
        assert!(!is_over(Kind::Spot, InstanceState::Up, 180), "it runs until it is taken back");
    }

    #[test]
    fn an_instance_that_was_to_go_long_ago_and_runs_is_left_alone() {
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
    fn an_answer_from_before_the_notice_is_behind_it() {
        assert!(behind("", Kind::Launch, None));
        for kind in [Kind::Running, Kind::LaunchFromWarmPool] {
            assert!(behind("", kind, Some(InstanceState::Down)));
        }
        for kind in [Kind::Stopped, Kind::Terminated] {
            assert!(behind("out-of-service", kind, Some(InstanceState::GoingDown)));
            assert!(!behind("out-of-service", kind, Some(InstanceState::Down)));
            assert!(!behind("", kind, Some(InstanceState::GoingDown)), "nothing is done of it");
        }
    }

    #[test]
    fn what_any_time_may_answer_is_not() {
        assert!(!behind("out-of-service", Kind::Launch, Some(InstanceState::Up)));
        assert!(!behind("out-of-service", Kind::Running, Some(InstanceState::Up)));
        assert!(!behind("out-of-service", Kind::Terminated, None), "EC2 forgets it after an hour");
        assert!(!behind("out-of-service", Kind::Running, None), "nothing is to be given back");
        assert!(!behind("out-of-service", Kind::Spot, None));
    }
}
