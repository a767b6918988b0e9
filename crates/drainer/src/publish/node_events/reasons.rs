//! Chooses the reasons and notes of Kubernetes events.

use std::fmt::Write as _;

use spillway_core::drain::pod::RequestedBy;
use spillway_notice::continued::PublishedBlockage;

use super::{About, EventDraft, EventSeverity, ReceiptDrain};
use crate::receipt::{Ending, Fate, PodRecord, StepName};

pub(super) fn begun<'a>(drain: &ReceiptDrain<'_>, pods: usize) -> EventDraft<'a> {
    let ReceiptDrain { receipt, instance, kind, .. } = drain;
    let until = match (receipt.notice.deadline, &receipt.hook) {
        (Some(deadline), _) => format!("goes at {deadline}"),
        (None, Some(hook)) => format!("waits for the lifecycle hook {} of group {}", hook.name, hook.group),
        (None, None) => "may go".to_owned(),
    };
    let leave = if pods == 1 { "1 pod has to leave".to_owned() } else { format!("{pods} pods have to leave") };
    let note = format!("{kind}: instance {instance} {until}; {leave}", kind = kind.as_str());
    let at = receipt.step_ms(StepName::Claimed).map(|at_ms| drain.at(at_ms));
    EventDraft { about: About::Node, severity: EventSeverity::Normal, reason: "Draining", note, at, pods: Some(pods) }
}

pub(super) fn blocked<'a>(drain: &ReceiptDrain<'_>, turn: PublishedBlockage) -> EventDraft<'a> {
    let (severity, reason) = match turn {
        PublishedBlockage::Begun => (EventSeverity::Warning, "DrainBlocked"),
        PublishedBlockage::Over => (EventSeverity::Normal, "DrainUnblocked"),
    };
    let note = format!("{}: {}", drain.kind.as_str(), drain.receipt.reason);
    EventDraft { about: About::Node, severity, reason, note, at: None, pods: None }
}

pub(super) fn blocked_pod<'a>(drain: &ReceiptDrain<'_>, pod: &'a PodRecord, turn: PublishedBlockage) -> EventDraft<'a> {
    let (severity, reason, what) = match turn {
        PublishedBlockage::Begun => (EventSeverity::Warning, "Blocked", pod.why()),
        PublishedBlockage::Over => (EventSeverity::Normal, "Unblocked", "nothing blocks it any more"),
    };
    let note = format!("drain of node {} ({}): {what}", drain.node, drain.kind.as_str());
    EventDraft { about: About::Pod(pod), severity, reason, note, at: None, pods: None }
}

pub(super) fn ended<'a>(drain: &ReceiptDrain<'_>) -> Option<EventDraft<'a>> {
    let (severity, reason) = match drain.receipt.ending {
        Some(Ending::Drained) => (EventSeverity::Normal, "Drained"),
        Some(Ending::Continued) => (EventSeverity::Normal, "DrainContinues"),
        Some(Ending::Failed) => (EventSeverity::Warning, "DrainFailed"),
        Some(Ending::Done) => (EventSeverity::Normal, "Cordoned"),
        // The hook of a claimed node was over.
        Some(Ending::Ignored) => (EventSeverity::Normal, "DrainStopped"),
        Some(Ending::Joined) | None => return None,
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
    Some(EventDraft { about: About::Node, severity, reason, note, at: None, pods: None })
}

/// Returns the event about a lost, evicted or deleted pod. Returns `None` for other pods.
pub(super) fn pod<'a>(drain: &ReceiptDrain<'_>, pod: &'a PodRecord) -> Option<EventDraft<'a>> {
    let left_by = drain.publication.left_by(pod);
    let (severity, reason, what) = match pod.fate {
        Fate::Lost => {
            (EventSeverity::Warning, "LostWithNode", format!("still there when the time was up: {}", pod.why()))
        }
        // The pod was leaving already, or is left to a later invocation.
        _ if pod.accepted_ms.is_none() && left_by.is_none() => return None,
        Fate::Remaining => (EventSeverity::Normal, "Evicted", "requested to leave, still on the node".to_owned()),
        Fate::Clean => (EventSeverity::Normal, "Evicted", evicted(pod, left_by)),
        Fate::Clamped => (EventSeverity::Warning, "EvictedWithLessGrace", evicted(pod, left_by)),
        Fate::Forced => (EventSeverity::Warning, "Forced", format!("forced although {}, {}", pod.why(), grace(pod))),
        Fate::Unconfirmed => (EventSeverity::Warning, "Unconfirmed", format!("requested to leave; {}", pod.why())),
        Fate::Stayed | Fate::Returned | Fate::WouldLeave | Fate::WouldBeBlocked => return None,
    };
    let note = format!("drain of node {} ({}): {what}", drain.node, drain.kind.as_str());
    let at = pod.gone_ms.map(|at_ms| drain.at(at_ms));
    Some(EventDraft { about: About::Pod(pod), severity, reason, note, at, pods: None })
}

/// Returns a note about an evicted pod. Names the cause if another drain or a person made the pod leave.
fn evicted(pod: &PodRecord, left_by: Option<RequestedBy>) -> String {
    let cause = if left_by == Some(RequestedBy::Another) { format!(" ({})", pod.why()) } else { String::new() };
    format!("evicted, {}{cause}", grace(pod))
}

/// Returns the text about a pod's grace period and about the duration of the pod's shutdown.
fn grace(pod: &PodRecord) -> String {
    let mut grace = match pod.given_s {
        Some(given) => format!("with {given} s of its grace period of {} s", pod.grace_s),
        None => format!("with its grace period of {} s", pod.grace_s),
    };
    if let (Some(accepted), Some(gone)) = (pod.accepted_ms, pod.gone_ms) {
        let took = gone.saturating_sub(accepted).max(0);
        let _ = write!(grace, "; gone after {}.{} s", took / 1000, took % 1000 / 100);
    }
    grace
}
