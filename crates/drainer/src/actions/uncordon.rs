//! Uncordoning: what a node was taken out for is over, so that it is given back.

use spillway_core::decision::Reason;
use spillway_core::instance::InstanceState;
use spillway_core::node::uncordon::{UncordonCause, UncordonResult};
use spillway_core::outcome::{Outcome, UncordonOutcome};
use spillway_notice::Kind;

use super::give_back::{NotGivenBack, Patiently, give_back, reached_by};
use super::undo_check;
use crate::context::{Context, Target};
use crate::failure::Failure;
use crate::later::Deleted;
use crate::receipt::record::Record;

/// Something is over: what was scheduled for it is not done, and the node is given back.
pub(crate) async fn uncordon(context: &Context, target: &Target<'_>, record: &mut Record) -> Result<Outcome, Failure> {
    let notice = target.attempt.notice;
    let end = target.attempt.window.end;
    let deleted = match notice.kind {
        Kind::MaintenanceOver => context.scheduler.delete_all_of(notice, end).await?,
        _ => Deleted::No,
    };
    let node = give_back_at_notice(context, target, record).await?;
    Ok(match (deleted, node) {
        (Deleted::Yes, node) => Outcome::CalledOff { instance: notice.instance.clone(), node },
        (Deleted::No, UncordonOutcome::Uncordoned { result: UncordonResult::NotOurs { node }, .. })
            if notice.kind == Kind::MaintenanceOver && context.settings.schedules.is_some() =>
        {
            undo_check::look_once_more(context, target, node, record).await?.into()
        }
        (Deleted::No, node) => node.into(),
    })
}

/// Gives the target's node back, if its instance runs.
pub(super) async fn give_back_at_notice(
    context: &Context,
    target: &Target<'_>,
    record: &mut Record,
) -> Result<UncordonOutcome, Failure> {
    let Target { attempt, instance, cluster, .. } = target;
    let Some(cause) = UncordonCause::of_notice(attempt.notice) else {
        return Ok(UncordonOutcome::Ignored(Reason::NothingToUndo(attempt.notice.kind.as_str())));
    };
    // When it runs again, that is another notice.
    if instance.state != InstanceState::Up {
        return Ok(UncordonOutcome::Ignored(Reason::NotUp(instance.id.to_string())));
    }
    let end = attempt.window.end;
    // An action that waits is worth an invocation's time; else nobody waits.
    let reached = if attempt.action.is_some() { end } else { reached_by(end) };
    let until = Patiently { reached, ready: Some(end) };
    let result = match give_back(context, cluster, instance, &cause, until).await {
        Ok(result) => result,
        Err(NotGivenBack::NotLetIn { reason, .. }) => return Ok(UncordonOutcome::Ignored(reason)),
        Err(NotGivenBack::NotReached(failure)) => {
            return undo_check::try_later(context, target, failure, record).await;
        }
        Err(NotGivenBack::Failed(failure)) => return Err(failure),
    };
    if let Some(node) = result.node() {
        record.found(node);
    }
    let (cluster, provider_id) = ((*cluster).clone(), instance.provider_id());
    Ok(UncordonOutcome::Uncordoned { result, cause, cluster, provider_id })
}
