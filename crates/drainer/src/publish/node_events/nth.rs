//! What aws-node-termination-handler's events tell, for those who alert on their reasons: its reasons, types and
//! sentences where what they say is true here. It writes a pod's before the drain, and for each pod of the node; here
//! they are about pods that were told to leave.
//!
//! Some of its reasons have nothing to tell of here: `PreDrain` and `PreDrainError`, because taints come with the cordon;
//! `CordonError`, because a node that is not claimed is not known; `Uncordon` and `CancelDrain`, which are no part of a
//! drain.

use spillway_notice::Kind;

use super::{About, Drain, EventSeverity, Told};
use crate::receipt::{BeginNotified, Ending, HookState, PodRecord, StepName};

fn of_node<'a>(severity: EventSeverity, reason: &'static str, note: String) -> Told<'a> {
    Told { about: About::Node, severity, reason, note, at: None, pods: None }
}

/// The node: why it is being drained.
pub(super) fn begun<'a>(drain: &Drain<'_>) -> Told<'a> {
    let Drain { receipt, instance, kind, noticed, .. } = drain;
    // As Go writes a time.
    let at = noticed.strftime("%Y-%m-%d %H:%M:%S +0000 UTC");
    let (reason, note) = match kind {
        Kind::Spot => {
            ("SpotInterruption", format!("Spot Interruption notice for instance {instance} was sent at {at}"))
        }
        Kind::Rebalance => (
            "RebalanceRecommendation",
            format!("Rebalance recommendation event received. Instance {instance} will be cordoned at {at}"),
        ),
        Kind::Maintenance => (
            "ScheduledEvent",
            format!("AWS Health scheduled change event received. Instance {instance} will be interrupted at {at}"),
        ),
        Kind::Stopping => ("StateChange", state_change(instance, "stopping", &at)),
        Kind::ShuttingDown => ("StateChange", state_change(instance, "shutting-down", &at)),
        Kind::Stopped => ("StateChange", state_change(instance, "stopped", &at)),
        Kind::Terminated => ("StateChange", state_change(instance, "terminated", &at)),
        Kind::Terminate | Kind::ReturnToWarmPool | Kind::ReplaceRootVolume => {
            ("ASGLifecycle", format!("ASG Lifecycle Termination event received. Instance will be interrupted at {at}"))
        }
        // NTH knows none of these.
        Kind::CapacityReservation
        | Kind::CapacityBlock
        | Kind::MaintenanceOver
        | Kind::Running
        | Kind::Launch
        | Kind::LaunchFromWarmPool
        | Kind::RootVolumeReplaced => {
            ("UnknownInterruption", format!("{} of instance {instance} at {at}", kind.as_str()))
        }
    };
    let at = receipt.step_ms(StepName::Claimed).map(|at_ms| drain.at(at_ms));
    Told { at, ..of_node(EventSeverity::Normal, reason, note) }
}

fn state_change(instance: &str, state: &str, at: &impl std::fmt::Display) -> String {
    format!("EC2 State Change event received. Instance {instance} went into {state} at {at}")
}

/// The node: how that ended.
pub(super) fn ended<'a>(drain: &Drain<'_>) -> Vec<Told<'a>> {
    let told = |severity, reason, note: &str| of_node(severity, reason, note.to_owned());
    // People alert on the notice's reason, which it has for every notice.
    let notice = (drain.publication.begin == BeginNotified::Untold).then(|| begun(drain));
    let ended = match drain.receipt.ending {
        Some(Ending::Drained) => {
            Some(told(EventSeverity::Normal, "CordonAndDrain", "Node successfully cordoned and drained"))
        }
        Some(Ending::Done) => Some(told(EventSeverity::Normal, "Cordon", "Node successfully cordoned")),
        Some(Ending::Failed) => {
            let why = &drain.receipt.reason;
            let note = format!("There was a problem while trying to cordon and drain the node: {why}");
            Some(told(EventSeverity::Warning, "CordonAndDrainError", &note))
        }
        // It has no later invocation, and nobody to join.
        Some(Ending::Continued | Ending::Ignored | Ending::Joined) | None => None,
    };
    notice.into_iter().chain(ended).chain(hook(drain)).collect()
}

fn hook<'a>(drain: &Drain<'_>) -> Option<Told<'a>> {
    let hook = drain.receipt.hook.as_ref()?;
    match hook.state {
        HookState::Completed => {
            let note = "Post-drain task successfully executed".to_owned();
            Some(of_node(EventSeverity::Normal, "PostDrain", note))
        }
        HookState::Failed => {
            let note = format!("There was a problem executing the post-drain task: {hook}");
            Some(of_node(EventSeverity::Warning, "PostDrainError", note))
        }
        HookState::Left | HookState::Held | HookState::AlreadyOver => None,
    }
}

/// A pod: that it was told to leave.
pub(super) fn pod<'a>(drain: &Drain<'_>, pod: &'a PodRecord) -> Option<Told<'a>> {
    let at = drain.at(pod.accepted_ms?);
    let note = format!("Pod evicted due to node drain (node {})", drain.node);
    let (severity, reason, at) = (EventSeverity::Normal, "PodEviction", Some(at));
    Some(Told { about: About::Pod(pod), severity, reason, note, at, pods: None })
}
