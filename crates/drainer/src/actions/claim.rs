//! Claims the node of an instance. If the node cannot be claimed, ends the handling of the notice.

use std::time::Duration;

use kube::Api;
use kube::core::Status;
use spillway_core::decision::Reason;
use spillway_core::node::unclaimed::Unclaimed;
use spillway_core::outcome::{DrainOutcome, Outcome};
use spillway_retry::jittered;
use tokio::time::{Instant, sleep};

use super::{Next, lifecycle, postpone};
use crate::context::{Context, Target};
use crate::drain;
use crate::failure::Failure;
use crate::kube::ApiError;
use crate::node::{self, ClaimedNode, NodeError};
use crate::receipt::Fate;
use crate::receipt::record::{HookStatus, Record};

/// Maximum time to retry a failing claim if AWS cannot cancel the notice. Afterwards, pods are evicted without a cordon.
const CLAIMED_WITHIN: Duration = Duration::from_secs(5);
/// Maximum time to list the remaining pods after the lifecycle action is over.
const LISTED_WITHIN: Duration = Duration::from_secs(5);
/// First and longest pause between attempts to cordon a node that is already being drained.
const PAUSES: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(30));

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The claim is for a cordon without a drain.
    Cordon,
    /// The claim is for a drain. If AWS cannot cancel the notice, the drain may begin without a cordon.
    Drain,
}

pub(crate) enum Claiming {
    /// The node is claimed, or the drain may begin without a cordon.
    Claimed(ClaimedNode),
    /// The node is not claimed. The caller returns this result.
    Ended(Next),
}

/// Claims the target's node. Retries until the attempt's time is up or the lifecycle action is over.
pub(super) async fn claim(
    context: &Context,
    target: &Target<'_>,
    purpose: Purpose,
    record: &mut Record,
) -> Result<Claiming, Failure> {
    let attempt = target.attempt;
    if let Some(action) = &attempt.action {
        action.confirm_ours();
    }
    let (claimant, end) = (target.claimant(), attempt.window.end);
    let doing = format!("cordon the node of instance {}", target.instance.id);
    let may_skip_cordon = purpose == Purpose::Drain && claimant.instance_goes();
    let mut failing_since = None;
    let claiming = context.in_cluster(target.cluster, end, &doing, async |client| {
        attempt.wait_until_action_is_known().await;
        let (nodes, began) = (Api::all(client.clone()), Instant::now());
        let claimed = match node::claim(&nodes, target.instance, &claimant).await {
            Err(NodeError::Api(error))
                if may_skip_cordon
                    && is_retryable_write_error(&error)
                    && CLAIMED_WITHIN <= failing_since.get_or_insert(began).elapsed() =>
            {
                Box::pin(node::observe_without_claiming(&nodes, target.instance, &claimant, status_of(error))).await
            }
            claimed => claimed,
        };
        NodeError::settled(claimed.map(|claim| ClaimedNode { claim, client }))
    });
    let claimed = tokio::select! {
        biased;
        claimed = claiming => claimed?,
        () = attempt.wait_until_action_is_over() => {
            record.hook = HookStatus::AlreadyOver(None);
            return Ok(Claiming::Ended(Box::pin(hook_over(context, target, record)).await.into()));
        }
    };
    match claimed {
        Ok(node) => {
            record.claimed(&node, attempt.invocation.clock.now());
            Ok(Claiming::Claimed(node))
        }
        Err(why) => {
            if matches!(why, Unclaimed::MaintenanceBegan(_)) {
                Box::pin(postpone::remove_taint(context, target, record)).await?;
            }
            Ok(Claiming::Ended(unclaimed(why, context, target, record).await?))
        }
    }
}

/// Returns the outcome of a notice whose lifecycle action is over before the pods are listed. Records each pod that is still on
/// the node as lost.
pub(super) async fn hook_over(context: &Context, target: &Target<'_>, record: &mut Record) -> Outcome {
    let history = target.attempt.history;
    let claimed_before = || history.earlier.iter().rev().find_map(|earlier| earlier.node.clone());
    let Some(node) = record.node.clone().or_else(claimed_before) else { return Outcome::Ignored(Reason::HookIsOver) };
    let mut on_node = None;
    if !history.remaining.is_empty() {
        let (end, doing) = (Instant::now() + LISTED_WITHIN, format!("list the pods of node {node}"));
        let listing = context.in_cluster(target.cluster, end, &doing, async |client| drain::uids(&client, &node).await);
        match listing.await {
            Ok(uids) => on_node = Some(uids),
            Err(failure) => tracing::warn!("{}; its pods count as lost", failure.text()),
        }
    }
    record.left_to_a_hook(history, on_node.as_ref());
    record.found(&node);
    let lost = record.pods.iter().filter(|pod| pod.fate == Fate::Lost).count();
    DrainOutcome::HookOver { node, lost: (!record.pods.is_empty()).then_some(lost) }.into()
}

/// Returns `true` if a retry of the write may succeed, for example after the timeout of an admission webhook.
fn is_retryable_write_error(error: &ApiError) -> bool {
    match error {
        ApiError::Refused(status) => matches!(status.code, 409 | 429 | 500..),
        error => matches!(error, ApiError::Timeout(_)),
    }
}

/// Returns the API server's status for a failed claim. If the API server sent no status, returns a timeout status.
fn status_of(error: ApiError) -> Box<Status> {
    match error {
        ApiError::Refused(status) => status,
        error => Box::new(Status::failure(&error.to_string(), "Timeout").with_code(504)),
    }
}

/// Repeats a failed claim during the drain until the node is cordoned.
pub(super) async fn keep_trying_to_cordon(target: &Target<'_>, node: &ClaimedNode, record: &mut Record) {
    let (claimant, nodes) = (target.claimant(), Api::all(node.client.clone()));
    let (mut pause, longest) = PAUSES;
    let mut denied = node.claim.denied().is_some();
    while denied {
        sleep(jittered(pause)).await;
        pause = (pause * 2).min(longest);
        let Ok(claim) = node::claim(&nodes, target.instance, &claimant).await else { continue };
        denied = claim.denied().is_some();
        if !denied {
            tracing::info!(node.name = claim.node, "cordoned node {} during its drain", claim.node);
            let node = ClaimedNode { claim, client: node.client.clone() };
            record.claimed(&node, target.attempt.invocation.clock.now());
        }
    }
}

/// Ends a notice whose node is not claimed. If the node's labels name another manager, returns [`Next::DecideAgain`] instead.
pub(crate) async fn unclaimed(
    why: Unclaimed,
    context: &Context,
    target: &Target<'_>,
    record: &mut Record,
) -> Result<Next, Failure> {
    let reason = match why {
        Unclaimed::NoNode => return Ok(lifecycle::no_node(context, target, record).await?.into()),
        Unclaimed::ManagedBy(managed_by) => return Ok(Next::DecideAgain(managed_by)),
        Unclaimed::OptedOut(node) => Reason::OptedOut(node),
        Unclaimed::GivenBack(node) => Reason::GivenBack(node),
        Unclaimed::DrainedByAnother(node) => return Ok(Outcome::from(DrainOutcome::DrainedByAnother { node }).into()),
        Unclaimed::MaintenanceBegan(node) => Reason::MaintenanceBegan(node),
        Unclaimed::NotSelected(node) => Reason::NotSelected(node),
    };
    Ok(Outcome::Ignored(reason).into())
}
