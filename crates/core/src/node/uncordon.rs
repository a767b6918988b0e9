//! Giving a node back: our marks go, and so does the cordon, if it is still ours.
//!
//! A node that somebody had cordoned before us, or has uncordoned since, keeps its cordon as it is.
//! Whose the cordon is, the API server knows: `managedFields` name who last changed
//! `spec.unschedulable`, and a cordon of a node that is cordoned already changes nothing. What cannot
//! be told there is taken for somebody else's.

use std::fmt;

use jiff::Timestamp;
use json_patch::Patch;
use k8s_openapi::api::core::v1::{Node, Taint};
use kube_core::ResourceExt as _;
use spillway_notice::{Kind, Maintenance, Notice};

use super::claim_annotation::{ANNOTATION, ClaimAnnotation};
use super::observed::ObservedNode;
use super::patch::{FIELD_MANAGER, Operations};
use super::readiness::{Ready, ready};
use super::{labels, taint};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UncordonCause {
    /// The time in which an interruption might have followed a rebalance recommendation.
    Rebalance,
    /// This maintenance, or it was called off or put off.
    Maintenance(Maintenance),
    /// The reboot that this maintenance was for.
    Reboot(Maintenance),
    /// The stop: the instance runs again, since then.
    Stop { runs_since: Timestamp },
    /// Its time in the warm pool.
    WarmPool,
    /// The replacement of its root volume.
    RootVolume,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UncordonResult {
    /// Nothing of ours is left on the node, and it takes pods.
    GivenBack { node: String },
    /// Nothing of ours is left on the node; its cordon is somebody else's business.
    LeftAlone { node: String, why: CordonOwner },
    /// The node is of no use yet; nothing was changed.
    NotReadyYet { node: String, why: NotYet },
    /// Its label opts it out; nothing was changed.
    OptedOut { node: String },
    /// Another notice holds the claim; it stays.
    Held { node: String, notice: String, event: String },
    /// Nothing of ours is on the node.
    NotOurs { node: String },
    /// The cluster has no such node.
    NoNode,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CordonOwner {
    /// Somebody had cordoned it before us.
    CordonedBefore,
    /// Somebody has uncordoned it, and cordoned it again.
    CordonedSince,
    /// Somebody has uncordoned it.
    Uncordoned,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotYet {
    NotReady,
    /// Its boot id is the one that it was claimed with.
    NotRebooted,
    /// Nothing of ours is on it, but the notice of what is called off may be late, and claim it yet.
    NotClaimed,
}

impl UncordonResult {
    pub fn node(&self) -> Option<&str> {
        match self {
            Self::GivenBack { node }
            | Self::LeftAlone { node, .. }
            | Self::NotReadyYet { node, .. }
            | Self::OptedOut { node }
            | Self::Held { node, .. }
            | Self::NotOurs { node } => Some(node),
            Self::NoNode => None,
        }
    }
}

impl fmt::Display for UncordonCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rebalance => "no interruption has followed the rebalance recommendation",
            Self::Maintenance(_) => "its maintenance is over, called off or put off",
            Self::Reboot(_) => "it has rebooted",
            Self::Stop { .. } => "its instance runs again",
            Self::WarmPool => "its instance has left the warm pool",
            Self::RootVolume => "its root volume is replaced",
        })
    }
}

impl fmt::Display for CordonOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CordonedBefore => "somebody else had cordoned it before; the cordon stays",
            Self::CordonedSince => "somebody else has cordoned it since; the cordon stays",
            Self::Uncordoned => "somebody else has uncordoned it",
        })
    }
}

impl fmt::Display for NotYet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotReady => "it is not Ready",
            Self::NotRebooted => "it has not rebooted",
            Self::NotClaimed => "nothing of ours is on it, but a notice that came late may yet take it out of use",
        })
    }
}

impl UncordonCause {
    /// What is over, as the notice tells: maintenance that is still ahead was not for what was done before.
    pub fn of_notice(notice: &Notice) -> Option<Self> {
        match (notice.kind, &notice.maintenance) {
            (Kind::MaintenanceOver | Kind::Maintenance, Some(maintenance)) => {
                Some(Self::Maintenance(maintenance.clone()))
            }
            (Kind::Running, _) => Some(Self::Stop { runs_since: notice.time }),
            (Kind::LaunchFromWarmPool, _) => Some(Self::WarmPool),
            (Kind::RootVolumeReplaced, _) => Some(Self::RootVolume),
            _ => None,
        }
    }

    /// What is over when the time of the notice's undo check has come.
    pub fn of_check(notice: &Notice) -> Option<Self> {
        match (notice.kind, &notice.maintenance) {
            (Kind::Rebalance, _) => Some(Self::Rebalance),
            (Kind::Maintenance, Some(maintenance)) => Some(Self::Reboot(maintenance.clone())),
            (Kind::ReplaceRootVolume, _) => Some(Self::RootVolume),
            // Its cluster could not be reached when it came.
            _ => Self::of_notice(notice),
        }
    }

    fn was_for(&self, annotation: &ClaimAnnotation) -> bool {
        match (self, annotation.kind()) {
            (Self::Rebalance, Some(Kind::Rebalance))
            | (Self::WarmPool, Some(Kind::ReturnToWarmPool))
            | (Self::RootVolume, Some(Kind::ReplaceRootVolume)) => true,
            (Self::Maintenance(over) | Self::Reboot(over), Some(Kind::Maintenance)) => {
                annotation.maintenance.as_ref().is_some_and(|id| over.is(id))
            }
            // Maintenance may be just that an instance is stopped and started. An instance that was launched may be
            // interrupted before the notice arrives that it runs.
            (Self::Stop { runs_since }, Some(kind)) => {
                matches!(kind, Kind::Spot | Kind::Stopping | Kind::ReturnToWarmPool | Kind::Maintenance)
                    && annotation.since.is_none_or(|claimed| claimed <= *runs_since)
            }
            _ => false,
        }
    }
}

/// What is to be changed on the node, and what will have come of it.
pub fn decide(node: &Node, over: &UncordonCause) -> (Option<Patch>, UncordonResult) {
    let (name, seen) = (node.name_any(), ObservedNode::of(node));
    let annotation = seen.annotation();
    let ours = annotation.as_ref().filter(|annotation| over.was_for(annotation));
    // A node that is Ready is in service, whatever it was given back for.
    let was_down = ours.is_some() || matches!(over, UncordonCause::Stop { .. } | UncordonCause::WarmPool);
    let is_ours = |taint: &Taint| {
        ours.is_some_and(|annotation| annotation.taints.contains(&taint::text(taint)))
            || (was_down && *taint == taint::out_of_service())
            || taint.key == taint::PLANNED
    };
    let taints: Vec<usize> =
        seen.taints.iter().enumerate().filter(|(_, taint)| is_ours(taint)).map(|(at, _)| at).collect();
    let held = || match &annotation {
        Some(annotation) => UncordonResult::Held {
            node: name.clone(),
            notice: annotation.notice.clone(),
            event: annotation.event.clone(),
        },
        None => UncordonResult::NotOurs { node: name.clone() },
    };
    if ours.is_none() && taints.is_empty() {
        return (None, held());
    }
    if seen.label(labels::IGNORE).is_some() {
        return (None, UncordonResult::OptedOut { node: name });
    }
    // A node that only waited for its turn was never out of use.
    let only_waited = ours.is_none() && taints.iter().all(|at| seen.taints[*at].key == taint::PLANNED);
    if let Some(why) = not_yet(node, &seen, ours, over).filter(|_| !only_waited) {
        return (None, UncordonResult::NotReadyYet { node: name, why });
    }

    let mut patch = Operations::default();
    // What was read decides, so nothing may have changed since.
    patch.test(&["metadata", "resourceVersion"], node.metadata.resource_version.clone());
    // From the end, so that the places of the others stay.
    for at in taints.iter().rev() {
        patch.remove(&["spec", "taints", &at.to_string()]);
    }
    let Some(annotation) = ours else { return (Some(patch.done()), held()) };
    patch.remove(&["metadata", "annotations", ANNOTATION]);
    if seen.label(labels::EXCLUDED) == Some(labels::EXCLUDED_BY_US) {
        patch.remove(&["metadata", "labels", labels::EXCLUDED]);
    }
    let undone = match cordon_owner(node, &seen, annotation) {
        None => {
            patch.remove(&["spec", "unschedulable"]);
            UncordonResult::GivenBack { node: name }
        }
        Some(why) => UncordonResult::LeftAlone { node: name, why },
    };
    (Some(patch.done()), undone)
}

fn not_yet(node: &Node, seen: &ObservedNode, ours: Option<&ClaimAnnotation>, over: &UncordonCause) -> Option<NotYet> {
    let claimed_with = ours.and_then(|annotation| annotation.boot.as_ref());
    match over {
        _ if ready(node) != Ready::Yes => Some(NotYet::NotReady),
        UncordonCause::Reboot(_) | UncordonCause::RootVolume
            if claimed_with.is_some() && claimed_with == seen.boot.as_ref() =>
        {
            Some(NotYet::NotRebooted)
        }
        _ => None,
    }
}

/// Whose the cordon is; `None`: ours.
fn cordon_owner(node: &Node, seen: &ObservedNode, annotation: &ClaimAnnotation) -> Option<CordonOwner> {
    let entries = node.metadata.managed_fields.iter().flatten();
    let mut owners = entries.filter(|entry| {
        let fields = entry.fields_v1.as_ref().map(|fields| &fields.0);
        fields.is_some_and(|fields| fields.pointer("/f:spec/f:unschedulable").is_some())
    });
    let owner = owners.next().and_then(|entry| entry.manager.as_deref());
    match (seen.cordoned, annotation.cordoned) {
        (false, _) => Some(CordonOwner::Uncordoned),
        (true, false) => Some(CordonOwner::CordonedBefore),
        (true, true) if owner == Some(FIELD_MANAGER) && owners.next().is_none() => None,
        (true, true) => Some(CordonOwner::CordonedSince),
    }
}

#[cfg(test)]
mod tests;
