//! Deletes the `NodeClaim` of a node, so that Karpenter drains the node.

use spillway_core::instance::ManagedBy;
use spillway_core::node::labels::NODE_POOL;
use spillway_core::node::node_claim::HandedOver;
use spillway_core::node::unclaimed::Unclaimed;
use spillway_core::outcome::Outcome;
use spillway_notice::Deadline;

use super::Next;
use super::claim::unclaimed;
use crate::context::target::LEAST_WINDOW;
use crate::context::{Context, Target};
use crate::failure::Failure;
use crate::node::{NodeError, node_claim};
use crate::receipt::StepName;
use crate::receipt::record::Record;

/// Sets the notice's deadline on the `NodeClaim` of the target's node, then deletes the `NodeClaim`.
pub(crate) async fn hand_over(context: &Context, target: &Target<'_>, record: &mut Record) -> Result<Next, Failure> {
    let Target { attempt, instance, cluster, .. } = target;
    let clock = attempt.invocation.clock;
    if let Some(action) = &attempt.action {
        action.confirm_ours();
    }
    let end = attempt.window.end;
    let doing = format!("hand the node of instance {} to Karpenter", instance.id);
    let handed = context.in_cluster(cluster, end, &doing, async |client| {
        let deadline = match attempt.notice.deadline {
            // With a deadline in the past, Karpenter gives each pod one second.
            Deadline::Hard(at) if !attempt.is_past_deadline() => Some(at.max(clock.now() + LEAST_WINDOW)),
            // Without a deadline each pod keeps its own grace period.
            Deadline::Hard(_) | Deadline::Unknown | Deadline::HeldByHook | Deadline::Open => None,
        };
        let selector = &attempt.settings.node_selector;
        NodeError::settled(node_claim::hand_over(&client, instance, selector, deadline).await)
    });
    match handed.await? {
        Ok(handed) => {
            if let HandedOver::ToKarpenter { .. } = handed {
                record.step(StepName::NodeClaimDeleted, clock.now());
            }
            record.found(handed.node());
            Ok(Outcome::HandedOver(handed).into())
        }
        Err(why) => {
            if why == Unclaimed::ManagedBy(ManagedBy::SelfManaged) {
                record.warn(format!(
                    "the tags of instance {} name Karpenter, but its node has neither the label {NODE_POOL} nor a NodeClaim; \
                     ignoring the tags",
                    instance.id
                ));
            }
            unclaimed(why, context, target, record).await
        }
    }
}
