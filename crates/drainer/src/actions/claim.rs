//! Connecting to a node's cluster and claiming the node; and what becomes of a notice whose node is not claimed.

use kube::Api;
use spillway_core::decision::Reason;
use spillway_core::node::claimant::Unclaimed;
use spillway_core::outcome::Outcome;

use super::{Next, lifecycle};
use crate::context::{Context, Target};
use crate::failure::Failure;
use crate::node::{self, ClaimedNode, NodeError};
use crate::receipt::StepName;
use crate::receipt::record::{HookStatus, Record};

/// What trying to claim a node came to.
pub(crate) enum Claiming {
    /// It is claimed.
    Claimed(ClaimedNode),
    /// It is not, and that follows.
    Ended(Next),
}

/// Claims the target's node, until its window ends or its lifecycle action waits no longer. What follows from a node that
/// cannot be claimed is done.
pub(crate) async fn claim(context: &Context, target: &Target<'_>, record: &mut Record) -> Result<Claiming, Failure> {
    let attempt = target.attempt;
    if let Some(action) = &attempt.action {
        action.confirm_ours();
    }
    let (claimant, end) = (target.claimant(&context.settings), attempt.window().end);
    let doing = format!("cordon the node of instance {}", target.instance.id);
    let claiming = context.in_cluster(target.cluster, end, &doing, async |client| {
        attempt.wait_until_action_is_known().await;
        let nodes = Api::all(client.clone());
        let claimed = node::claim(&nodes, target.instance, &claimant).await;
        NodeError::settled(claimed.map(|claim| ClaimedNode { claim, client }))
    });
    let claimed = tokio::select! {
        biased;
        claimed = claiming => claimed?,
        () = attempt.wait_until_action_is_over() => {
            record.hook = HookStatus::AlreadyOver(None);
            return Ok(Claiming::Ended(Outcome::Ignored(Reason::HookIsOver).into()));
        }
    };
    match claimed {
        Ok(node) => {
            record.claimed(&node.claim, &node.client);
            if node.claim.denied().is_none() {
                record.step(StepName::Claimed, attempt.invocation.clock.now());
            }
            Ok(Claiming::Claimed(node))
        }
        Err(why) => Ok(Claiming::Ended(unclaimed(why, target, record).await?)),
    }
}

/// What becomes of a notice whose node is not claimed.
pub(crate) async fn unclaimed(why: Unclaimed, target: &Target<'_>, record: &mut Record) -> Result<Next, Failure> {
    let reason = match why {
        Unclaimed::NoNode => return Ok(lifecycle::no_node(target, record).await?.into()),
        Unclaimed::ManagedBy(managed_by) => return Ok(Next::DecideAgain(managed_by)),
        Unclaimed::OptedOut(node) => Reason::OptedOut(node),
        Unclaimed::GivenBack(node) => Reason::GivenBack(node),
        Unclaimed::MaintenanceBegan(node) => Reason::MaintenanceBegan(node),
        Unclaimed::NotSelected(node) => Reason::NotSelected(node),
    };
    Ok(Outcome::Ignored(reason).into())
}
