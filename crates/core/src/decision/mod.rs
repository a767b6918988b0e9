//! What is to be done about a notice: one table, kind of notice by what manages the node. Pure.
//!
//! `docs/notices.md` shows the same table; a test compares them. Decided elsewhere:
//! * who completes a hook whose instance is no node, or one that cannot be got at: `actions/lifecycle.rs`;
//! * whether the node may be claimed at all: `node/claim.rs`, when it has been seen;
//! * what happens to each pod: `drain/plan.rs`.

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
pub use plausible::{implausible, of_another_group};
pub use reason::{Reason, Refusal};
pub use switch::{Switch, switch_of};
pub use times::{
    REBALANCE_WINDOW, begins, first_check, follows_a_claim, look_again, next_check, next_turn, pace_ends, planned_start,
};

/// EKS' own hook on the groups that it manages.
pub const HOOK_OF_EKS: &str = "Terminate-LC-Hook";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    Drain,
    Cordon,
    /// Wait until it is Ready, then complete the launch hook.
    AwaitReady,
    /// Complete the launch hook at once: no node is waited for.
    Complete,
    Undo,
    OutOfService,
    /// Delete its `NodeClaim`: Karpenter does the rest.
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

/// Returns `true` if a node may be drained without EC2's description of its instance. The instance must be going, and no setting may
/// need what only EC2 knows.
pub fn may_be_identified_by_node(notice: &Notice, settings: &Settings, now: Timestamp) -> bool {
    let is_going = match notice.kind {
        Kind::Maintenance => false,
        Kind::Stopping | Kind::ShuttingDown => is_fresh(notice, now),
        Kind::Terminate | Kind::ReturnToWarmPool | Kind::ReplaceRootVolume => settings.hook_group_tag.is_none(),
        _ => matches!(notice.deadline, Deadline::Hard(_)),
    };
    is_going && settings.managed_tag.is_none()
}

/// What the settings rule out before anything is asked of AWS.
pub fn by_setting(notice: &Notice, settings: &Settings) -> Option<Reason> {
    if let Decision::Ignore(reason) = decision_for(notice.kind, settings) {
        return Some(reason);
    }
    // A node is given back, whoever completes its hook.
    let hook = notice.hook.as_ref().filter(|_| !notice.kind.comes_back())?;
    left_to_others(&hook.name, settings)
}

pub fn left_to_others(hook: &str, settings: &Settings) -> Option<Reason> {
    (!settings.hooks.iter().any(|ours| ours == hook)).then(|| Reason::NotOurHook(hook.to_owned()))
}

/// The hook that is ours to complete, if one waits: a node is given back, whoever completes its launch hook.
pub fn our_hook<'i>(notice: &'i Notice, settings: &Settings) -> Option<&'i Hook> {
    let launch_is_left = is_launch(notice.kind) && settings.launch.is_none();
    let is_left = |hook: &&Hook| launch_is_left || left_to_others(&hook.name, settings).is_some();
    notice.hook.as_ref().filter(|hook| !is_left(hook))
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WhoseCluster {
    /// In this one, on whose nodes we act.
    Ours(ClusterName),
    /// In none, or in one that is left to others.
    NotOurs(Reason),
    Ambiguous(Refusal),
}

/// Whose cluster an instance is in, by its tags and the setting that names ours.
pub fn cluster_of(instance: &Instance, settings: &Settings) -> WhoseCluster {
    match membership(&instance.tags) {
        Membership::In(cluster) => {
            let ours = settings.clusters.is_empty() || settings.clusters.contains(&cluster.to_string());
            if ours { WhoseCluster::Ours(cluster) } else { WhoseCluster::NotOurs(Reason::NotOurCluster(cluster)) }
        }
        Membership::NoCluster => WhoseCluster::NotOurs(Reason::NoCluster(instance.id.to_string())),
        Membership::Several(clusters) => {
            let is_ours = |cluster: &&String| settings.clusters.is_empty() || settings.clusters.contains(cluster);
            let instance = instance.id.to_string();
            match clusters.iter().filter(is_ours).collect::<Vec<_>>()[..] {
                [] => WhoseCluster::NotOurs(Reason::NotOurClusters { instance, clusters }),
                [one] => WhoseCluster::Ours(ClusterName::new(one)),
                _ => WhoseCluster::Ambiguous(Refusal::SeveralClusters { instance, clusters }),
            }
        }
    }
}

/// What is to be done now: as the table says, but
/// * a notice about a state that is no more is ignored;
/// * a node whose hook is left to others is only uncordoned;
/// * what begins later is postponed, except in a dry run, which says what will be done then.
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

/// The table: what a notice does to a node that is managed so.
pub fn by_table(kind: Kind, owner: ManagedBy, settings: &Settings) -> Decision {
    let decision = decision_for(kind, settings);
    match owner {
        _ if matches!(decision, Decision::Ignore(Reason::SwitchedOff(_))) => decision,
        ManagedBy::SelfManaged => decision,
        ManagedBy::ManagedNodeGroup => match settings.managed_node_groups {
            ManagedNodeGroups::Leave => Decision::Ignore(Reason::ManagedNodeGroup),
            ManagedNodeGroups::Gaps if eks_drains_for(kind) => Decision::Ignore(Reason::ManagedNodeGroupDrainsItself),
            ManagedNodeGroups::Gaps | ManagedNodeGroups::Drain => decision,
        },
        ManagedBy::Karpenter => match (settings.karpenter, decision) {
            (KarpenterNodes::NodeClaim, Decision::Drain) if !is_of_group(kind) => Decision::NodeClaim,
            // What was scheduled is called off; Karpenter's nodes have no marks of ours.
            (KarpenterNodes::NodeClaim, Decision::Undo) if kind == Kind::MaintenanceOver => Decision::Undo,
            (_, _) if is_of_group(kind) => Decision::Ignore(Reason::KarpenterHasNoGroup),
            (_, _) => Decision::Ignore(Reason::Karpenter),
        },
        ManagedBy::AutoMode => Decision::Ignore(Reason::AutoMode),
        ManagedBy::Fargate => Decision::Ignore(Reason::Fargate),
        ManagedBy::Hybrid => Decision::Ignore(Reason::Hybrid),
    }
}

/// Whether the settings want anything done about such a notice.
pub fn is_wanted(kind: Kind, settings: &Settings) -> bool {
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

/// Whether EKS drains its managed node groups for such a notice (EKS user guide, "Managed node groups").
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
