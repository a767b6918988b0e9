//! What a notice may claim: its time, how far ahead it looks, whose hook it names. Pure.
//!
//! AWS' own notices keep to this. One that does not was made or sent again by somebody who may invoke the function.

use jiff::{SignedDuration, Timestamp};
use spillway_notice::{Deadline, Kind, Notice};

use super::Reason;
use crate::instance::Instance;

/// Clocks are apart by less: AWS refuses the calls of whoever is five minutes off (Signature Version 4).
const CLOCKS_APART: SignedDuration = SignedDuration::from_mins(5);
/// As long as EventBridge (the rules of the template: an hour at most) and Lambda's queue (an hour) keep a notice together.
const QUEUED: SignedDuration = SignedDuration::from_hours(2);
/// As long as a lifecycle hook waits.
const HOOK_WAITS: SignedDuration = SignedDuration::from_hours(48);
/// AWS announces maintenance weeks ahead, and moves its start by weeks.
const ANNOUNCED: SignedDuration = SignedDuration::from_hours(366 * 24);

/// Why AWS sends no such notice at that time, if it does not. One that an earlier invocation has handed on was asked then.
pub fn implausible(kind: Kind, time: Timestamp, deadline: Deadline, now: Timestamp) -> Option<Reason> {
    let age = now.duration_since(time);
    if age < -CLOCKS_APART {
        return Some(Reason::FromTheFuture(time));
    }
    let (oldest, ahead) = match kind {
        // A schedule brings it back weeks later, and nothing hangs on its age.
        Kind::Maintenance | Kind::MaintenanceOver => (SignedDuration::MAX, ANNOUNCED),
        Kind::Terminate
        | Kind::ReturnToWarmPool
        | Kind::ReplaceRootVolume
        | Kind::Launch
        | Kind::LaunchIntoWarmPool
        | Kind::LaunchFromWarmPool
        | Kind::RootVolumeReplaced => (HOOK_WAITS, QUEUED),
        _ => (QUEUED, QUEUED),
    };
    match deadline {
        _ if age > oldest => Some(Reason::TooOld(time)),
        Deadline::Hard(at) if at.duration_since(now) > ahead => Some(Reason::TooFarAhead(at)),
        _ => None,
    }
}

/// Why the notice's hook is not the instance's to wait for, if it is not: it is another group's.
pub fn of_another_group(notice: &Notice, instance: &Instance) -> Option<Reason> {
    let named = notice.hook.as_ref().map(|hook| &hook.group)?;
    let own = match instance.group() {
        Some(own) if own == named => return None,
        // An instance that is attached has its tag a little later.
        None if matches!(notice.kind, Kind::Launch | Kind::LaunchIntoWarmPool) => return None,
        own => own.unwrap_or("none").to_owned(),
    };
    Some(Reason::AnotherGroup { instance: instance.id.to_string(), named: named.clone(), own })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{self, at, hook, instance, tags};

    const NOW: &str = "2026-11-21T12:00:00Z";

    fn refused(kind: Kind, time: &str) -> Option<String> {
        implausible(kind, at(time), Deadline::Open, at(NOW)).map(|reason| reason.to_string())
    }

    #[test]
    fn a_time_ahead_of_the_clock_is_refused() {
        for kind in Kind::ALL {
            assert_eq!(refused(kind, "2026-11-21T12:05:00Z"), None, "{kind:?}");
            let why = "the notice is dated 2026-11-21T12:05:01Z, ahead of the function's clock: AWS has not sent it";
            assert_eq!(refused(kind, "2026-11-21T12:05:01Z").as_deref(), Some(why), "{kind:?}");
        }
    }

    #[test]
    fn what_is_older_than_queues_keep_it_or_a_hook_waits_is_refused() {
        assert_eq!(refused(Kind::Spot, "2026-11-21T10:00:00Z"), None);
        let why = "the notice is dated 2026-11-21T09:59:59Z, and AWS brings none of this kind so late: somebody has sent it again";
        assert_eq!(refused(Kind::Spot, "2026-11-21T09:59:59Z").as_deref(), Some(why));
        assert_eq!(refused(Kind::Terminate, "2026-11-19T12:00:00Z"), None);
        assert!(refused(Kind::Terminate, "2026-11-19T11:59:59Z").is_some());
        assert_eq!(refused(Kind::Maintenance, "2026-09-01T00:00:00Z"), None, "it waited for its time");
    }

    #[test]
    fn what_is_announced_further_ahead_than_aws_does_is_refused() {
        let refused = |kind, starts: &str| implausible(kind, at(NOW), Deadline::Hard(at(starts)), at(NOW));
        assert_eq!(refused(Kind::Maintenance, "2027-11-22T12:00:00Z"), None);
        let why = "the notice announces something for 2027-11-22T12:00:01Z, further ahead than AWS does";
        let reason = refused(Kind::Maintenance, "2027-11-22T12:00:01Z").map(|reason| reason.to_string());
        assert_eq!(reason.as_deref(), Some(why));
        assert_eq!(refused(Kind::CapacityBlock, "2026-11-21T12:10:00Z"), None);
        assert!(refused(Kind::CapacityBlock, "2026-11-21T14:00:01Z").is_some());
    }

    #[test]
    fn a_hook_of_another_group_than_the_instances_is_refused() {
        let of = |kind, group: Option<&str>| {
            let notice = Notice { hook: Some(hook("spillway")), ..test_support::notice(kind, Deadline::HeldByHook) };
            let own = group.map(|group| ("aws:autoscaling:groupName", group));
            let instance = Instance { tags: tags(own.as_slice()), ..instance() };
            of_another_group(&notice, &instance).map(|reason| reason.to_string())
        };
        assert_eq!(of(Kind::Terminate, Some("workers")), None);
        assert!(of(Kind::Terminate, None).is_some());
        assert_eq!(of(Kind::Launch, None), None);
        let why = of(Kind::Launch, Some("batch")).unwrap();
        let id = instance().id;
        assert_eq!(
            why,
            format!("the notice is of a hook of Auto Scaling group workers, and instance {id} is of group batch")
        );
    }
}
