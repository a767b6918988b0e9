//! Decision about a notice, by the kind of notice and the owner of the node. Pure.
//!
//! `docs/notices.md` has the table of decisions. Other modules decide about:
//! * a hook whose instance has no reachable node: `actions/lifecycle.rs`;
//! * the claim of the node: `node/observed.rs`;
//! * each pod: `drain/plan.rs`.

mod behind;
mod plausible;
mod reason;
mod switch;
mod times;

use jiff::Timestamp;
use spillway_notice::{Deadline, Hook, Kind, Notice};
use spillway_settings::{KarpenterNodes, ManagedNodeGroups, Policy, Settings};

use crate::cluster::ClusterName;
use crate::instance::{Instance, ManagedBy, Membership, membership};
pub use behind::is_behind;
use behind::{is_fresh, is_over};
pub use plausible::{hook_of_another_group, implausible};
pub use reason::{Exemption, Reason, Refusal};
pub use switch::{Switch, switch_of};
pub use times::{
    REBALANCE_WINDOW, begins, expects_claim, first_check, latest_start, next_attempt, next_check, next_undo_check,
    planned_start,
};

/// Lifecycle hook that EKS adds to the Auto Scaling groups of managed node groups.
pub const HOOK_OF_EKS: &str = "Terminate-LC-Hook";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    Drain,
    Cordon,
    /// Wait until the node is Ready, then complete the launch hook.
    AwaitReady,
    /// Complete the launch hook at once, without waiting for a node.
    Complete,
    /// Uncordon the node.
    Undo,
    /// Add the taint `node.kubernetes.io/out-of-service` to the node.
    OutOfService,
    /// Delete the node's `NodeClaim`, so that Karpenter drains the node.
    NodeClaim,
    Postpone(Timestamp),
    Ignore(Reason),
}

impl Decision {
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Drain => "drain",
            Self::Cordon => "cordon",
            Self::AwaitReady => "await-ready",
            Self::Complete => "complete",
            Self::Undo => "uncordon",
            Self::OutOfService => "out-of-service",
            Self::NodeClaim => "nodeclaim",
            Self::Postpone(_) => "postpone",
            Self::Ignore(_) => "ignore",
        }
    }
}

/// Returns `true` if the node may be drained although EC2's description of the instance is missing.
pub fn may_be_identified_by_node(notice: &Notice, settings: &Settings, now: Timestamp) -> bool {
    let is_going = match notice.kind {
        Kind::Maintenance => false,
        Kind::Stopping | Kind::ShuttingDown => is_fresh(notice, now),
        Kind::Terminate | Kind::ReturnToWarmPool | Kind::ReplaceRootVolume => settings.hook_group_tag.is_none(),
        _ => matches!(notice.deadline, Deadline::Hard(_)),
    };
    is_going && settings.managed_tag.is_none()
}

/// Returns the reason if the settings ignore the notice. Needs no call to AWS.
pub fn ignored_by_settings(notice: &Notice, settings: &Settings) -> Option<Reason> {
    if let Decision::Ignore(reason) = decision_for(notice.kind, settings) {
        return Some(reason);
    }
    // A notice that uncordons its node is not ignored, even if another tool completes its hook.
    let hook = notice.hook.as_ref().filter(|_| !notice.kind.comes_back())?;
    foreign_hook(&hook.name, settings)
}

pub fn foreign_hook(hook: &str, settings: &Settings) -> Option<Reason> {
    (!settings.hooks.iter().any(|ours| ours == hook)).then(|| Reason::NotOurHook(hook.to_owned()))
}

/// Returns the lifecycle hook of the notice, if the settings let Spillway complete the hook.
pub fn our_hook<'i>(notice: &'i Notice, settings: &Settings) -> Option<&'i Hook> {
    let launch_is_left = is_launch(notice.kind) && settings.launch.is_none();
    let is_left = |hook: &&Hook| launch_is_left || foreign_hook(&hook.name, settings).is_some();
    notice.hook.as_ref().filter(|hook| !is_left(hook))
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClusterOwnership {
    /// The instance is in a cluster that Spillway handles.
    Ours(ClusterName),
    /// The instance is in no cluster, or in a cluster that the setting `Clusters` does not list.
    NotOurs(Reason),
    Ambiguous(Refusal),
}

/// Reads the cluster from the instance's tags, and checks that the setting `Clusters` includes the cluster.
pub fn cluster_of(instance: &Instance, settings: &Settings) -> ClusterOwnership {
    match membership(&instance.tags) {
        Membership::In(cluster) => {
            let ours = settings.clusters.is_empty() || settings.clusters.contains(&cluster.to_string());
            if ours {
                ClusterOwnership::Ours(cluster)
            } else {
                ClusterOwnership::NotOurs(Reason::NotOurCluster(cluster))
            }
        }
        Membership::NoCluster => ClusterOwnership::NotOurs(Reason::NoCluster(instance.id.clone())),
        Membership::Several(clusters) => {
            let is_ours = |cluster: &&String| settings.clusters.is_empty() || settings.clusters.contains(cluster);
            let instance = instance.id.clone();
            match clusters.iter().filter(is_ours).collect::<Vec<_>>()[..] {
                [] => ClusterOwnership::NotOurs(Reason::NotOurClusters { instance, clusters }),
                [one] => ClusterOwnership::Ours(ClusterName::new(one)),
                _ => ClusterOwnership::Ambiguous(Refusal::SeveralClusters { instance, clusters }),
            }
        }
    }
}

/// Returns the decision of [`by_table`], with these exceptions:
/// * A notice is ignored if its instance runs again, or still runs long after the deadline.
/// * If Spillway may not complete the launch hook, Spillway only uncordons the node.
/// * Planned maintenance is postponed, except in a dry run.
pub fn decide(
    notice: &Notice,
    instance: &Instance,
    managed_by: ManagedBy,
    settings: &Settings,
    now: Timestamp,
) -> Decision {
    if let Some(reason) = is_over(notice, instance, now) {
        return Decision::Ignore(reason);
    }
    let begins = begins(notice, settings);
    match by_table(notice.kind, managed_by, settings) {
        Decision::AwaitReady if our_hook(notice, settings).is_none() => Decision::Undo,
        Decision::Drain | Decision::Cordon | Decision::NodeClaim if now < begins && !settings.dry_run => {
            Decision::Postpone(begins)
        }
        decision => decision,
    }
}

pub fn by_table(kind: Kind, owner: ManagedBy, settings: &Settings) -> Decision {
    let decision = decision_for(kind, settings);
    let exempt = |exemption| Decision::Ignore(Reason::ManagedBy { owner, exemption });
    match owner {
        _ if matches!(decision, Decision::Ignore(Reason::SwitchedOff(_))) => decision,
        ManagedBy::SelfManaged => decision,
        ManagedBy::ManagedNodeGroup => match settings.managed_node_groups {
            ManagedNodeGroups::Leave => exempt(Exemption::SwitchedOff),
            ManagedNodeGroups::Gaps if eks_drains_for(kind) => exempt(Exemption::DrainsItself),
            ManagedNodeGroups::Gaps | ManagedNodeGroups::Drain => decision,
        },
        ManagedBy::Karpenter => match (settings.karpenter, decision) {
            (KarpenterNodes::NodeClaim, Decision::Drain) if !is_of_group(kind) => Decision::NodeClaim,
            // Only the schedule of the drain is deleted, because Karpenter's nodes have no marks of Spillway's.
            (KarpenterNodes::NodeClaim, Decision::Undo) if kind == Kind::MaintenanceOver => Decision::Undo,
            (_, _) if is_of_group(kind) => exempt(Exemption::NoGroup),
            (_, _) => exempt(Exemption::DrainsItself),
        },
        ManagedBy::AutoMode | ManagedBy::Fargate => exempt(Exemption::DrainsItself),
        ManagedBy::Hybrid => exempt(Exemption::NoInstance),
    }
}

pub fn is_enabled(kind: Kind, settings: &Settings) -> bool {
    !matches!(decision_for(kind, settings), Decision::Ignore(_))
}

fn decision_for(kind: Kind, settings: &Settings) -> Decision {
    let switch = switch_of(kind, settings);
    match (kind, switch.policy(settings)) {
        (_, Policy::Ignore) => Decision::Ignore(Reason::SwitchedOff(switch)),
        (Kind::Stopped | Kind::Terminated, _) if settings.taints.out_of_service => Decision::OutOfService,
        (Kind::Stopped | Kind::Terminated, _) => Decision::Ignore(Reason::NothingLeft),
        (Kind::Running | Kind::MaintenanceOver, _) => Decision::Undo,
        (Kind::Launch | Kind::LaunchFromWarmPool | Kind::RootVolumeReplaced, _) => Decision::AwaitReady,
        (Kind::LaunchIntoWarmPool, _) => Decision::Complete,
        (_, Policy::Drain) => Decision::Drain,
        (_, Policy::Cordon) => Decision::Cordon,
    }
}

/// Returns `true` if EKS drains managed node groups for this kind of notice (EKS user guide, "Managed node groups").
fn eks_drains_for(kind: Kind) -> bool {
    matches!(kind, Kind::Spot | Kind::Rebalance)
}

fn is_of_group(kind: Kind) -> bool {
    is_launch(kind) || matches!(kind, Kind::Terminate | Kind::ReturnToWarmPool | Kind::ReplaceRootVolume)
}

fn is_launch(kind: Kind) -> bool {
    matches!(kind, Kind::Launch | Kind::LaunchIntoWarmPool | Kind::LaunchFromWarmPool | Kind::RootVolumeReplaced)
}

#[cfg(test)]
mod tests;
