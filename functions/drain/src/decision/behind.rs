//! Whether what EC2 says of an instance is older than its notice. Pure.

use crate::aws::instance::{Instance, InstanceState};
use crate::notice::Kind;
use crate::settings::Settings;

/// Whether EC2's answer contradicts the notice, and may not have caught up with it: what it describes is "eventually
/// consistent" (EC2 developer guide). Where nothing hangs on it, it is not.
pub(crate) fn is_behind(kind: Kind, described: Option<&Instance>, settings: &Settings) -> bool {
    match (kind, described.map(|instance| instance.state)) {
        (Kind::Launch | Kind::LaunchFromWarmPool, None) => true,
        (Kind::Stopped | Kind::Terminated, Some(state)) => {
            settings.taints.out_of_service && state != InstanceState::Down
        }
        (Kind::Running | Kind::LaunchFromWarmPool, Some(state)) => state != InstanceState::Up,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{instance, settings};

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
