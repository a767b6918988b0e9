//! What our events tell: a reason for each way in which a drain or a pod may end.

use std::fmt::Write as _;

use spillway_core::drain::pod::RequestedBy;
use spillway_notice::continued::PublishedBlockage;

use super::{About, Drain, EventSeverity, Told};
use crate::receipt::{Ending, Fate, PodRecord, StepName};

/// The node: that it is being drained, why, and how many pods have to leave.
pub(super) fn begun<'a>(drain: &Drain<'_>, pods: usize) -> Told<'a> {
    let Drain { receipt, instance, kind, .. } = drain;
    let until = match (receipt.notice.deadline, &receipt.hook) {
        (Some(deadline), _) => format!("goes at {deadline}"),
        (None, Some(hook)) => format!("waits for the lifecycle hook {} of group {}", hook.name, hook.group),
        (None, None) => "may go".to_owned(),
    };
    let leave = if pods == 1 { "1 pod has to leave".to_owned() } else { format!("{pods} pods have to leave") };
    let note = format!("{kind}: instance {instance} {until}; {leave}", kind = kind.as_str());
    let at = receipt.step_ms(StepName::Claimed).map(|at_ms| drain.at(at_ms));
    Told { about: About::Node, severity: EventSeverity::Normal, reason: "Draining", note, at, pods: Some(pods) }
}

/// The node: that something blocks its drain, or no longer does.
pub(super) fn blocked<'a>(drain: &Drain<'_>, turn: PublishedBlockage) -> Told<'a> {
    let (severity, reason) = match turn {
        PublishedBlockage::Begun => (EventSeverity::Warning, "DrainBlocked"),
        PublishedBlockage::Over => (EventSeverity::Normal, "DrainUnblocked"),
    };
    let note = format!("{}: {}", drain.kind.as_str(), drain.receipt.reason);
    Told { about: About::Node, severity, reason, note, at: None, pods: None }
}

/// A pod: the same.
pub(super) fn blocked_pod<'a>(drain: &Drain<'_>, pod: &'a PodRecord, turn: PublishedBlockage) -> Told<'a> {
    let (severity, reason, what) = match turn {
        PublishedBlockage::Begun => (EventSeverity::Warning, "Blocked", pod.why()),
        PublishedBlockage::Over => (EventSeverity::Normal, "Unblocked", "nothing blocks it any more"),
    };
    let note = format!("drain of node {} ({}): {what}", drain.node, drain.kind.as_str());
    Told { about: About::Pod(pod), severity, reason, note, at: None, pods: None }
}

/// The node: how that ended.
pub(super) fn ended<'a>(drain: &Drain<'_>) -> Vec<Told<'a>> {
    let (severity, reason) = match drain.receipt.ending {
        Some(Ending::Drained) => (EventSeverity::Normal, "Drained"),
        Some(Ending::Continued) => (EventSeverity::Normal, "DrainContinues"),
        Some(Ending::Failed) => (EventSeverity::Warning, "DrainFailed"),
        Some(Ending::Done) => (EventSeverity::Normal, "Cordoned"),
        // A claimed node needs nothing more when the hook that it was drained for waits no longer.
        Some(Ending::Ignored) => (EventSeverity::Normal, "DrainStopped"),
        Some(Ending::Joined) | None => return Vec::new(),
    };
    let mut note = format!("{}: {}", drain.kind.as_str(), drain.receipt.reason);
    for fate in [Fate::Forced, Fate::Clamped] {
        match drain.receipt.count(fate) {
            0 => {}
            pods => {
                let _ = write!(note, "; {pods} {}", fate.as_str());
            }
        }
    }
    vec![Told { about: About::Node, severity, reason, note, at: None, pods: None }]
}

/// A pod: what became of it, if it was told to leave or is still there.
pub(super) fn pod<'a>(drain: &Drain<'_>, pod: &'a PodRecord) -> Option<Told<'a>> {
    let followed = drain.publication.followed(pod);
    let (severity, reason, what) = match pod.fate {
        Fate::Lost => {
            (EventSeverity::Warning, "LostWithNode", format!("still there when the time was up: {}", pod.why()))
        }
        // It was leaving already, or is a later invocation's.
        _ if pod.accepted_ms.is_none() && followed.is_none() => return None,
        Fate::Remaining => (EventSeverity::Normal, "Evicted", "told to leave, and still there".to_owned()),
        Fate::Clean => (EventSeverity::Normal, "Evicted", evicted(pod, followed)),
        Fate::Clamped => (EventSeverity::Warning, "EvictedWithLessGrace", evicted(pod, followed)),
        Fate::Forced => {
            (EventSeverity::Warning, "Forced", format!("made to leave although {}, {}", pod.why(), grace(pod)))
        }
        Fate::Unconfirmed => (EventSeverity::Warning, "Unconfirmed", format!("told to leave; {}", pod.why())),
        Fate::Stayed | Fate::Returned | Fate::WouldLeave | Fate::WouldBeBlocked => return None,
    };
    let note = format!("drain of node {} ({}): {what}", drain.node, drain.kind.as_str());
    let at = pod.gone_ms.map(|at_ms| drain.at(at_ms));
    Some(Told { about: About::Pod(pod), severity, reason, note, at, pods: None })
}

/// How a pod was evicted; if another had it leave, by whom.
fn evicted(pod: &PodRecord, followed: Option<RequestedBy>) -> String {
    let who = if followed == Some(RequestedBy::Another) { format!(" ({})", pod.why()) } else { String::new() };
    format!("evicted, {}{who}", grace(pod))
}

/// The grace that a pod got, and how much of it it took.
fn grace(pod: &PodRecord) -> String {
    let mut grace = match pod.given_s {
        Some(given) => format!("with {given} s of the {} s of grace that it asks for", pod.grace_s),
        None => format!("with the {} s of grace that it asks for", pod.grace_s),
    };
    if let (Some(told), Some(gone)) = (pod.accepted_ms, pod.gone_ms) {
        let took = gone.saturating_sub(told).max(0);
        let _ = write!(grace, "; gone after {}.{} s", took / 1000, took % 1000 / 100);
    }
    grace
}
