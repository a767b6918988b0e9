//! Completes lifecycle actions with a result that depends on the node:
//!
//! | state | result |
//! | --- | --- |
//! | the node is drained, cordoned or Ready | `CONTINUE` |
//! | the instance has no node in the cluster | `CONTINUE` |
//! | the instance is in no cluster, or the cluster denies access | value of `HooksWithoutNode`; with `off`, the action is not
//! completed |
//! | pods remain; after `ABANDON` the Auto Scaling group would keep the instance | `ABANDON` |
//! | pods remain; the Auto Scaling group terminates the instance in any case | `CONTINUE` |
//! | the node never was Ready | value of the setting `Launch` |

use spillway_core::decision::{Reason, our_hook};
use spillway_core::invocation::Invocation;
use spillway_core::outcome::Outcome;
use spillway_notice::{Deadline, Kind};
use spillway_settings::{LifecycleResult, Settings};

use super::claim::hook_over;
use crate::context::{Attempt, Context, Target};
use crate::failure::Failure;
use crate::receipt::StepName;
use crate::receipt::record::{HookStatus, Record};

/// Completes the notice's lifecycle action, if the notice has one.
pub(crate) async fn complete(
    attempt: &Attempt<'_>,
    result: LifecycleResult,
    record: &mut Record,
) -> Result<(), Failure> {
    let Some(action) = &attempt.action else { return Ok(()) };
    let Invocation { clock, .. } = attempt.invocation;
    match action.complete(result, attempt.invocation.completes_until()).await {
        Ok(completion) => {
            record.hook = HookStatus::after(completion, result);
            record.step(StepName::Completed, clock.now());
            Ok(())
        }
        Err(error) => {
            record.hook = HookStatus::Failed(result);
            Err(error.into())
        }
    }
}

/// Completes a waiting hook with `CONTINUE` if the instance has no node in the cluster. Fails if the notice's deadline has
/// passed, because pods may have been lost with the instance.
pub(crate) async fn no_node(context: &Context, target: &Target<'_>, record: &mut Record) -> Result<Outcome, Failure> {
    let Target { attempt, instance, cluster, .. } = target;
    // If the deadline is the notice's own time, the notice could not come earlier.
    if let Deadline::Hard(at) = attempt.notice.deadline
        && attempt.notice.time < at
        && at < attempt.invocation.clock.now()
    {
        return Err(Failure::TooLate { instance: instance.id.to_string(), deadline: at });
    }
    complete(attempt, LifecycleResult::Continue, record).await?;
    if matches!(record.hook, HookStatus::AlreadyOver(_)) && !attempt.history.remaining.is_empty() {
        return Ok(hook_over(context, target, record).await);
    }
    Ok(Outcome::Ignored(Reason::NoNode { cluster: (*cluster).clone(), provider_id: instance.provider_id() }))
}

/// Ends a notice whose instance does not exist or is in no EKS cluster. Completes a waiting hook with the result of the setting
/// `HooksWithoutNode`.
pub(crate) async fn not_a_node(
    context: &Context,
    attempt: &Attempt<'_>,
    reason: Reason,
    record: &mut Record,
) -> Result<Outcome, Failure> {
    let settings = &context.settings;
    let (Some(result), Some(_)) = (settings.hooks_without_node, our_hook(attempt.notice, settings)) else {
        return Ok(Outcome::Ignored(reason));
    };
    if settings.dry_run {
        let result = result.as_str();
        return Ok(Outcome::WouldHave(format!("completed the lifecycle hook with {result}: {reason}")));
    }
    complete(attempt, result, record).await?;
    Ok(Outcome::NotANode { reason })
}

/// Stage at which the handling of a notice failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HandlingStage {
    /// Handling failed before the decision, for example because EC2 did not answer.
    Undecided,
    /// Handling failed while the decision was carried out.
    Decided,
}

/// Returns the result for the lifecycle action of a notice whose handling failed. `None` if the action must not be completed.
pub(crate) fn result_after_failure(
    attempt: &Attempt<'_>,
    failure: &Failure,
    stage: HandlingStage,
    settings: &Settings,
) -> Option<LifecycleResult> {
    if attempt.action.as_ref()?.is_settled() {
        return None;
    }
    if failure.is_access_denied() {
        return settings.hooks_without_node;
    }
    match attempt.notice.kind {
        // The failure needs a change by people, such as a missing right, which may be granted before Lambda's retry.
        _ if failure.unfinished().is_none() => None,
        _ if stage == HandlingStage::Undecided => settings.hooks_without_node,
        Kind::Launch | Kind::LaunchIntoWarmPool | Kind::LaunchFromWarmPool | Kind::RootVolumeReplaced => {
            settings.launch
        }
        _ => Some(with_pods_left(attempt)),
    }
}

/// Returns the result for a lifecycle action while pods are left: `ABANDON` if the group keeps instances whose action is
/// abandoned, else `CONTINUE`.
pub(crate) fn with_pods_left(attempt: &Attempt<'_>) -> LifecycleResult {
    if attempt.keeps_instance() { LifecycleResult::Abandon } else { LifecycleResult::Continue }
}
