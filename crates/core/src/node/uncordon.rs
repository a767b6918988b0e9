//! Uncordons a claimed node: removes Spillway's marks, and the cordon if Spillway owns the cordon.
//!
//! The owner of the cordon is the manager of `spec.unschedulable` in `managedFields`. A cordon from before the claim stays.

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
    /// AWS did not interrupt the instance within one hour after the rebalance recommendation.
    Rebalance,
    /// The maintenance is over, called off or postponed.
    Maintenance(Maintenance),
    /// The node has rebooted for the maintenance.
    Reboot(Maintenance),
    /// The instance has been running again since `runs_since`.
    Stop { runs_since: Timestamp },
    /// The instance has left the warm pool.
    WarmPool,
    /// The root volume has been replaced.
    RootVolume,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UncordonResult {
    /// Spillway has uncordoned the node, and has removed its own taints, labels and annotation.
    GivenBack { node: String },
    /// Spillway has removed its own taints, labels and annotation, but has not changed the cordon.
    CordonKept { node: String, why: CordonOwner },
    /// The node cannot take pods yet, and is unchanged.
    NotReadyYet { node: String, why: NotYet },
    /// The node has the opt-out label, and is unchanged.
    OptedOut { node: String },
    /// Another notice holds the claim, so the node stays cordoned.
    Held { node: String, notice: String, event: String },
    /// The node has no claim.
    NotOurs { node: String },
    /// The cluster has no node of the instance.
    NoNode,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CordonOwner {
    /// The node was cordoned before Spillway's claim.
    CordonedBefore,
    /// After Spillway's claim, the node was uncordoned and cordoned again.
    CordonedSince,
    /// After Spillway's claim, the node was uncordoned.
    Uncordoned,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotYet {
    NotReady,
    /// The node still has the boot id that the claim recorded.
    NotRebooted,
    /// The node has no claim, but a late notice may still claim the node.
    NotClaimed,
}

impl UncordonResult {
    pub fn node(&self) -> Option<&str> {
        match self {
            Self::GivenBack { node }
            | Self::CordonKept { node, .. }
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
            Self::CordonedBefore => "it was cordoned before our claim; the cordon stays",
            Self::CordonedSince => "it was cordoned again since our claim; the cordon stays",
            Self::Uncordoned => "it was uncordoned since our claim",
        })
    }
}

impl fmt::Display for NotYet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotReady => "it is not Ready",
            Self::NotRebooted => "it has not rebooted",
            Self::NotClaimed => "it has no claim, but a late notice may still claim it",
        })
    }
}

impl UncordonCause {
    /// Returns the reason why the notice uncordons its node. `None`: the notice uncordons no node.
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

    /// Returns the reason why the undo check for the notice uncordons the node. `None`: no undo check uncordons the node.
    pub fn of_check(notice: &Notice) -> Option<Self> {
        match (notice.kind, &notice.maintenance) {
            (Kind::Rebalance, _) => Some(Self::Rebalance),
            (Kind::Maintenance, Some(maintenance)) => Some(Self::Reboot(maintenance.clone())),
            (Kind::ReplaceRootVolume, _) => Some(Self::RootVolume),
            // Any other notice uncordons its node itself. Its check follows only if the cluster was unreachable when the notice
            // came.
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
            // Maintenance may consist of a stop and a start. If the claim is newer than the start, the claim stays, because a new
            // interruption may have been announced since.
            (Self::Stop { runs_since }, Some(kind)) => {
                matches!(kind, Kind::Spot | Kind::Stopping | Kind::ReturnToWarmPool | Kind::Maintenance)
                    && annotation.since.is_none_or(|claimed| claimed <= *runs_since)
            }
            _ => false,
        }
    }
}

/// Decides whether to uncordon the node. Returns the patch, if one is needed, and the result to report after the patch.
pub fn decide(node: &Node, over: &UncordonCause) -> (Option<Patch>, UncordonResult) {
    let (name, observed) = (node.name_any(), ObservedNode::of(node));
    let annotation = observed.annotation();
    let ours = annotation.as_ref().filter(|annotation| over.was_for(annotation));
    let taints = our_taints(&observed, ours, over);
    if ours.is_none() && taints.is_empty() {
        return (None, held(name, annotation));
    }
    if observed.label(labels::IGNORE).is_some() {
        return (None, UncordonResult::OptedOut { node: name });
    }
    // A node that only waited for its planned drain was never cordoned, so the node need not be Ready.
    let only_waited = ours.is_none() && taints.iter().all(|at| observed.taints[*at].key == taint::PLANNED);
    if let Some(why) = not_yet(node, &observed, ours, over).filter(|_| !only_waited) {
        return (None, UncordonResult::NotReadyYet { node: name, why });
    }

    let mut patch = Operations::default();
    // The patch fails if the node has changed since the read.
    patch.test(&["metadata", "resourceVersion"], node.metadata.resource_version.clone());
    // Removed from the end, so that the other positions stay valid.
    for at in taints.iter().rev() {
        patch.remove(&["spec", "taints", &at.to_string()]);
    }
    let Some(ours) = ours else { return (Some(patch.done()), held(name, annotation)) };
    patch.remove(&["metadata", "annotations", ANNOTATION]);
    if observed.label(labels::EXCLUDED) == Some(labels::EXCLUDED_BY_US) {
        patch.remove(&["metadata", "labels", labels::EXCLUDED]);
    }
    let undone = match cordon_owner(node, &observed, ours) {
        None => {
            patch.remove(&["spec", "unschedulable"]);
            UncordonResult::GivenBack { node: name }
        }
        Some(why) => UncordonResult::CordonKept { node: name, why },
    };
    (Some(patch.done()), undone)
}

/// Returns the positions of the taints that Spillway added to the node.
fn our_taints(observed: &ObservedNode, ours: Option<&ClaimAnnotation>, over: &UncordonCause) -> Vec<usize> {
    // An instance that was down may have left the out-of-service taint, even if the node has no claim.
    let was_down = ours.is_some() || matches!(over, UncordonCause::Stop { .. } | UncordonCause::WarmPool);
    let is_ours = |taint: &Taint| {
        ours.is_some_and(|annotation| annotation.taints.contains(&taint::text(taint)))
            || (was_down && *taint == taint::out_of_service())
            || taint.key == taint::PLANNED
    };
    observed.taints.iter().enumerate().filter(|(_, taint)| is_ours(taint)).map(|(at, _)| at).collect()
}

/// Returns the result for a node that has no claim, or a claim for another notice.
fn held(node: String, annotation: Option<ClaimAnnotation>) -> UncordonResult {
    match annotation {
        Some(ClaimAnnotation { notice, event, .. }) => UncordonResult::Held { node, notice, event },
        None => UncordonResult::NotOurs { node },
    }
}

fn not_yet(
    node: &Node,
    observed: &ObservedNode,
    ours: Option<&ClaimAnnotation>,
    over: &UncordonCause,
) -> Option<NotYet> {
    let claimed_with = ours.and_then(|annotation| annotation.boot.as_ref());
    match over {
        _ if ready(node) != Ready::Yes => Some(NotYet::NotReady),
        UncordonCause::Reboot(_) | UncordonCause::RootVolume
            if claimed_with.is_some() && claimed_with == observed.boot.as_ref() =>
        {
            Some(NotYet::NotRebooted)
        }
        _ => None,
    }
}

/// Returns the owner of the cordon; `None` if Spillway is the owner.
fn cordon_owner(node: &Node, observed: &ObservedNode, annotation: &ClaimAnnotation) -> Option<CordonOwner> {
    let entries = node.metadata.managed_fields.iter().flatten();
    let mut owners = entries.filter(|entry| {
        let fields = entry.fields_v1.as_ref().map(|fields| &fields.0);
        fields.is_some_and(|fields| fields.pointer("/f:spec/f:unschedulable").is_some())
    });
    let owner = owners.next().and_then(|entry| entry.manager.as_deref());
    match (observed.cordoned, annotation.cordoned) {
        (false, _) => Some(CordonOwner::Uncordoned),
        (true, false) => Some(CordonOwner::CordonedBefore),
        (true, true) if owner == Some(FIELD_MANAGER) && owners.next().is_none() => None,
        (true, true) => Some(CordonOwner::CordonedSince),
    }
}

#[cfg(test)]
mod tests;
