//! Who completes a lifecycle action, and with what.
//!
//! * An action whose node is drained, cordoned or Ready gets `CONTINUE` from the action that did it.
//! * The instance's node never joined the cluster, or has left it: `CONTINUE`, so that no group waits for nothing.
//! * The instance is in no cluster, or in one that does not let us in: what the setting `HooksWithoutNode` says, or nothing.
//! * The notice failed for good: `CONTINUE` though pods are left, or what the setting `Launch` says of a node that never
//!   was Ready.
//! * Pods are left, and the group keeps instances whose terminate hook is abandoned: `ABANDON`.

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

/// Completes the lifecycle action, if one waits.
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

/// The cluster has no such node: it never joined, or has left. Nobody needs the instance, so its group must not wait for it.
/// Fails if the notice came so late that its instance took its node along.
pub(crate) async fn no_node(context: &Context, target: &Target<'_>, record: &mut Record) -> Result<Outcome, Failure> {
    let Target { attempt, instance, cluster, .. } = target;
    // A notice whose deadline is its own time came when it could.
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

/// The instance is not a node of ours. An action that waits gets the answer of the setting, if that names one.
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

/// How far a notice had come when it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Spillway had not found out whether the instance is a node, and which cluster it is in.
    Undecided,
    /// Spillway had decided what to do, and that failed.
    Decided,
}

/// What an action is told whose notice has failed for good; `None`: nothing, it is left to its timeout.
pub(crate) fn last_answer(
    attempt: &Attempt<'_>,
    failure: &Failure,
    stage: Stage,
    settings: &Settings,
) -> Option<LifecycleResult> {
    if attempt.action.as_ref()?.is_settled() {
        return None;
    }
    if failure.shuts_us_out() {
        return settings.hooks_without_node;
    }
    match attempt.notice.kind {
        // What somebody has to fix may be fixed by the time of Lambda's retry.
        _ if failure.unfinished().is_none() => None,
        _ if stage == Stage::Undecided => settings.hooks_without_node,
        Kind::Launch | Kind::LaunchIntoWarmPool | Kind::LaunchFromWarmPool | Kind::RootVolumeReplaced => {
            settings.launch
        }
        _ => Some(with_pods_left(attempt)),
    }
}

/// The result of a terminate action when pods are left: ABANDON if the group keeps the instance, else CONTINUE. In a group that
/// keeps none, ABANDON would only skip the other hooks.
pub(crate) fn with_pods_left(attempt: &Attempt<'_>) -> LifecycleResult {
    if attempt.is_kept() { LifecycleResult::Abandon } else { LifecycleResult::Continue }
}
