//! Uncordons a node when a notice reports that the cause of the cordon is over.

use spillway_core::decision::Reason;
use spillway_core::instance::InstanceState;
use spillway_core::node::uncordon::{UncordonCause, UncordonResult};
use spillway_core::outcome::{Outcome, UncordonOutcome};
use spillway_notice::Kind;

use super::give_back::{NotGivenBack, UncordonDeadlines, connect_deadline, give_back};
use super::undo_check;
use crate::context::{Context, Target};
use crate::failure::Failure;
use crate::later::Deleted;
use crate::receipt::record::Record;

/// Uncordons the target's node. If maintenance is over, first deletes the schedules of the drain.
pub(crate) async fn uncordon(context: &Context, target: &Target<'_>, record: &mut Record) -> Result<Outcome, Failure> {
    let notice = target.attempt.notice;
    let end = target.attempt.window.end;
    let deleted = match notice.kind {
        Kind::MaintenanceOver => context.scheduler.delete_drain_schedules(notice, end).await?,
        _ => Deleted::No,
    };
    let node = give_back_at_notice(context, target, record).await?;
    Ok(match (deleted, node) {
        (Deleted::Yes, node) => Outcome::CalledOff { instance: notice.instance.clone(), node },
        (Deleted::No, UncordonOutcome::Uncordoned { result: UncordonResult::NotOurs { node }, .. })
            if notice.kind == Kind::MaintenanceOver && context.settings.schedules.is_some() =>
        {
            undo_check::check_once_more(context, target, node, record).await?.into()
        }
        (Deleted::No, node) => node.into(),
    })
}

/// Uncordons the target's node if the instance is running.
pub(super) async fn give_back_at_notice(
    context: &Context,
    target: &Target<'_>,
    record: &mut Record,
) -> Result<UncordonOutcome, Failure> {
    let Target { attempt, instance, cluster, .. } = target;
    let Some(cause) = UncordonCause::of_notice(attempt.notice) else {
        return Ok(UncordonOutcome::Ignored(Reason::NothingToUndo(attempt.notice.kind)));
    };
    // The next start of the instance causes another notice.
    if instance.state != InstanceState::Up {
        return Ok(UncordonOutcome::Ignored(Reason::NotUp(instance.id.clone())));
    }
    let end = attempt.window.end;
    // A waiting lifecycle action is worth the time of the whole invocation.
    let connect_by = if attempt.action.is_some() { end } else { connect_deadline(end) };
    let deadlines = UncordonDeadlines { connect_by, ready_by: Some(end) };
    let result = match give_back(context, cluster, instance, &cause, deadlines).await {
        Ok(result) => result,
        Err(NotGivenBack::NotOurCluster { reason, .. }) => return Ok(UncordonOutcome::Ignored(reason)),
        Err(NotGivenBack::NotReached(failure)) => {
            return undo_check::retry_later(context, target, failure, record).await;
        }
        Err(NotGivenBack::Failed(failure)) => return Err(failure),
    };
    if let Some(node) = result.node() {
        record.found(node);
    }
    let (cluster, provider_id) = ((*cluster).clone(), instance.provider_id());
    Ok(UncordonOutcome::Uncordoned { result, cause, cluster, provider_id })
}
