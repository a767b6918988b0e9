//! Undo checks: scheduled invocations that uncordon a node if the announced interruption did not happen or is over.

use std::time::Duration;

use jiff::Timestamp;
use spillway_core::clock::Clock;
use spillway_core::cluster::ClusterName;
use spillway_core::decision::{self, Reason};
use spillway_core::instance::{Instance, InstanceState};
use spillway_core::invocation::Invocation;
use spillway_core::node::claimant::Claim;
use spillway_core::node::uncordon::{NotYet, UncordonCause, UncordonResult};
use spillway_core::outcome::UncordonOutcome;
use spillway_notice::undo_check::{self, UndoCheck};
use spillway_notice::{Kind, Notice, payload};
use spillway_retry::jittered;
use tokio::time::Instant;

use super::give_back::{NotGivenBack, UncordonDeadlines, connect_deadline, give_back};
use crate::context::{Attempt, Context, Target};
use crate::failure::Failure;
use crate::later::{Later, ScheduleName};
use crate::receipt::StepName;
use crate::receipt::record::Record;

/// Maximum time that a drain waits for the schedule of the undo check to be created.
const SCHEDULED_WITHIN: Duration = Duration::from_secs(10);
/// Maximum random delay of an undo check that is scheduled because EC2 did not answer.
const SPREAD: Duration = Duration::from_mins(10);

/// Schedules the first undo check after a claim. For maintenance, also deletes the drain schedules. Runs before the drain,
/// because Lambda may end the invocation during the drain.
pub(super) async fn schedule_first_check(
    context: &Context,
    attempt: &Attempt<'_>,
    claim: &Claim,
) -> Result<(), Failure> {
    let (notice, clock) = (attempt.notice, attempt.invocation.clock);
    let end = (Instant::now() + SCHEDULED_WITHIN).min(attempt.invocation.continues_by());
    // Without a check the node stays cordoned, but a leftover schedule does no harm: the check is scheduled first.
    let arranged = async {
        if let Some(at) = decision::first_check(notice, clock.now()) {
            let check = UndoCheck::first(&attempt.history.notice, notice);
            send(context, notice, &check, at, clock, end).await?;
        }
        if notice.kind == Kind::Maintenance {
            context.scheduler.delete_drain_schedules(notice, end).await?;
        }
        Ok::<_, Failure>(())
    };
    arranged.await.inspect_err(|error| {
        let (node, error) = (&claim.node, error.text());
        tracing::warn!(node.name = node, error, "cannot schedule the undo check of node {node}; going on");
    })
}

/// Undo check that runs now.
#[derive(Debug)]
pub(crate) struct DueCheck<'a> {
    pub(crate) notice: &'a Notice,
    pub(crate) check: &'a UndoCheck,
    pub(crate) instance: &'a Instance,
    pub(crate) cluster: &'a ClusterName,
    pub(crate) cause: UncordonCause,
}

/// Uncordons the node if the cause of its cordon is over. If the node is not Ready yet, schedules the next undo check.
pub(crate) async fn check(
    context: &Context,
    due: DueCheck<'_>,
    invocation: &Invocation,
    record: &mut Record,
) -> Result<UncordonOutcome, Failure> {
    let DueCheck { notice, check, instance, cluster, cause } = due;
    let expects_claim = decision::expects_claim(notice.kind);
    // The next start of the instance causes another notice.
    if !expects_claim && instance.state != InstanceState::Up {
        return Ok(UncordonOutcome::Ignored(Reason::NotUp(instance.id.clone())));
    }
    let end = invocation.drains_until();
    let deadlines = UncordonDeadlines { connect_by: connect_deadline(end), ready_by: None };
    let result = match give_back(context, cluster, instance, &cause, deadlines).await {
        Ok(result) => result,
        Err(NotGivenBack::NotOurCluster { reason, .. }) if !expects_claim => {
            return Ok(UncordonOutcome::Ignored(reason));
        }
        Err(NotGivenBack::NotReached(failure)) => {
            let Some(at) = decision::next_check(notice.kind, check, invocation.clock.now()) else {
                let unreachable = UncordonOutcome::Ignored(Reason::Unreachable(cluster.clone()));
                return if expects_claim { Err(failure) } else { Ok(unreachable) };
            };
            schedule(context, notice, &check.next(), at, invocation, record).await?;
            return Ok(UncordonOutcome::NotReached { cluster: cluster.clone(), why: failure.text(), at });
        }
        Err(why) => return Err(why.into()),
    };
    if let Some(node) = result.node() {
        record.found(node);
    }
    let UncordonResult::NotReadyYet { node, why } = result else {
        let (cluster, provider_id) = (cluster.clone(), instance.provider_id());
        return Ok(UncordonOutcome::Uncordoned { result, cause, cluster, provider_id });
    };
    let now = invocation.clock.now();
    let Some(at) = decision::next_check(notice.kind, check, now) else {
        return Err(Failure::NotBack { node, why: why.to_string() });
    };
    schedule(context, notice, &check.next(), at, invocation, record).await?;
    Ok(UncordonOutcome::CheckedTooEarly { node, why, at })
}

/// Schedules an undo check for a notice whose cluster could not be reached.
pub(super) async fn retry_later(
    context: &Context,
    target: &Target<'_>,
    failure: Failure,
    record: &mut Record,
) -> Result<UncordonOutcome, Failure> {
    let Attempt { notice, history, invocation, .. } = target.attempt;
    let check = UndoCheck::first(&history.notice, notice);
    let Some(at) = decision::next_check(notice.kind, &check, invocation.clock.now()) else { return Err(failure) };
    schedule(context, notice, &check.next(), at, invocation, record).await?;
    Ok(UncordonOutcome::NotReached { cluster: target.cluster.clone(), why: failure.text(), at })
}

/// Schedules an undo check for a node without a claim. A delayed notice may still claim the node.
pub(super) async fn check_once_more(
    context: &Context,
    target: &Target<'_>,
    node: String,
    record: &mut Record,
) -> Result<UncordonOutcome, Failure> {
    let Attempt { notice, history, invocation, .. } = target.attempt;
    let (check, why) = (UndoCheck::first(&history.notice, notice), NotYet::NotClaimed);
    let at = decision::next_undo_check(invocation.clock.now());
    schedule(context, notice, &check, at, invocation, record).await?;
    Ok(UncordonOutcome::CheckedTooEarly { node, why, at })
}

/// Schedules an undo check if the notice has [`Kind::Running`] and a call to AWS failed. Otherwise returns `failure`.
pub(crate) async fn check_later_or_fail(
    context: &Context,
    notice: &Notice,
    check: &UndoCheck,
    failure: Failure,
    invocation: &Invocation,
    record: &mut Record,
) -> Result<UncordonOutcome, Failure> {
    if notice.kind != Kind::Running || failure.unfinished().is_none() || context.settings.dry_run {
        return Err(failure);
    }
    let Some(at) = decision::next_check(notice.kind, check, invocation.clock.now()) else { return Err(failure) };
    let at = at.saturating_add(jittered(SPREAD)).unwrap_or(at);
    schedule(context, notice, &check.next(), at, invocation, record).await?;
    Ok(UncordonOutcome::NotDescribed { why: failure.text(), at })
}

async fn schedule(
    context: &Context,
    notice: &Notice,
    check: &UndoCheck,
    at: Timestamp,
    invocation: &Invocation,
    record: &mut Record,
) -> Result<(), Failure> {
    send(context, notice, check, at, invocation.clock, invocation.continues_by()).await?;
    record.step(StepName::HandedOn, invocation.clock.now());
    Ok(())
}

async fn send(
    context: &Context,
    notice: &Notice,
    check: &UndoCheck,
    at: Timestamp,
    clock: Clock,
    end: Instant,
) -> Result<(), Failure> {
    let later = Later::At(at, ScheduleName::of_check(notice, check.number));
    context.send(&payload(undo_check::KEY, check), later, clock, end).await
}
