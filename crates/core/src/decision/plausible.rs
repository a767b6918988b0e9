//! Finds notices that AWS cannot have sent: forged or replayed by a principal that may invoke the function. Pure.

use jiff::{SignedDuration, Timestamp};
use spillway_notice::{Deadline, Kind, Notice};

use super::Reason;
use crate::instance::Instance;

/// Maximum difference between the clocks of AWS and of the function. Signature Version 4 allows five minutes.
const CLOCKS_APART: SignedDuration = SignedDuration::from_mins(5);
/// Maximum delay of a notice: one hour in EventBridge (set in the template) and one hour in Lambda's queue.
const QUEUED: SignedDuration = SignedDuration::from_hours(2);
/// Maximum time for which a lifecycle hook holds an instance.
const HOOK_WAITS: SignedDuration = SignedDuration::from_hours(48);
/// Maximum time from a notice to the start of the announced maintenance. Usually the maintenance starts within a few weeks.
const ANNOUNCED: SignedDuration = SignedDuration::from_hours(366 * 24);

/// Returns the reason to ignore a notice if AWS cannot have sent a notice with this `time` or `deadline`.
pub fn implausible(kind: Kind, time: Timestamp, deadline: Deadline, now: Timestamp) -> Option<Reason> {
    let age = now.duration_since(time);
    if age < -CLOCKS_APART {
        return Some(Reason::FromTheFuture(time));
    }
    let (oldest, ahead) = match kind {
        // A schedule may deliver the notice again weeks later.
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

/// Returns the reason to ignore a notice if its hook and its instance belong to different Auto Scaling groups.
pub fn hook_of_another_group(notice: &Notice, instance: &Instance) -> Option<Reason> {
    let named = notice.hook.as_ref().map(|hook| &hook.group)?;
    let own = match instance.group() {
        Some(own) if own == named => return None,
        // A launching instance gets its tag a little later.
        None if matches!(notice.kind, Kind::Launch | Kind::LaunchIntoWarmPool) => return None,
        own => own.unwrap_or("none").to_owned(),
    };
    Some(Reason::AnotherGroup { instance: instance.id.clone(), named: named.clone(), own })
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
    fn notice_from_the_future_is_refused() {
        for kind in Kind::ALL {
            assert_eq!(refused(kind, "2026-11-21T12:05:00Z"), None, "{kind:?}");
            let why = "the notice is dated 2026-11-21T12:05:01Z, ahead of the function's clock: AWS did not send it";
            assert_eq!(refused(kind, "2026-11-21T12:05:01Z").as_deref(), Some(why), "{kind:?}");
        }
    }

    #[test]
    fn notice_older_than_its_queue_or_hook_is_refused() {
        assert_eq!(refused(Kind::Spot, "2026-11-21T10:00:00Z"), None);
        let why = "the notice is dated 2026-11-21T09:59:59Z, too long ago for its kind: AWS did not send it now";
        assert_eq!(refused(Kind::Spot, "2026-11-21T09:59:59Z").as_deref(), Some(why));
        assert_eq!(refused(Kind::Terminate, "2026-11-19T12:00:00Z"), None);
        assert!(refused(Kind::Terminate, "2026-11-19T11:59:59Z").is_some());
        assert_eq!(refused(Kind::Maintenance, "2026-09-01T00:00:00Z"), None, "it waited for its schedule");
    }

    #[test]
    fn deadline_too_far_ahead_is_refused() {
        let refused = |kind, starts: &str| implausible(kind, at(NOW), Deadline::Hard(at(starts)), at(NOW));
        assert_eq!(refused(Kind::Maintenance, "2027-11-22T12:00:00Z"), None);
        let why = "the notice announces something for 2027-11-22T12:00:01Z, further ahead than AWS does";
        let reason = refused(Kind::Maintenance, "2027-11-22T12:00:01Z").map(|reason| reason.to_string());
        assert_eq!(reason.as_deref(), Some(why));
        assert_eq!(refused(Kind::CapacityBlock, "2026-11-21T12:10:00Z"), None);
        assert!(refused(Kind::CapacityBlock, "2026-11-21T14:00:01Z").is_some());
    }

    #[test]
    fn hook_of_another_group_is_refused() {
        let of = |kind, group: Option<&str>| {
            let notice = Notice { hook: Some(hook("spillway")), ..test_support::notice(kind, Deadline::HeldByHook) };
            let own = group.map(|group| ("aws:autoscaling:groupName", group));
            let instance = Instance { tags: tags(own.as_slice()), ..instance() };
            hook_of_another_group(&notice, &instance).map(|reason| reason.to_string())
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
