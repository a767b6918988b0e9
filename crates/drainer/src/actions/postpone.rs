//! Postpones a drain: creates a schedule that delivers the notice again when the drain begins.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kube::Api;
use spillway_core::decision;
use spillway_core::node::pace::OtherDrains;
use spillway_core::node::uncordon::{UncordonCause, UncordonResult};
use spillway_core::outcome::Outcome;
use spillway_notice::continued::{self, History};
use spillway_notice::payload;
use tokio::time::Instant;

use super::give_back::{NotGivenBack, UncordonDeadlines, connect_deadline, give_back};
use super::undo_check;
use crate::context::{Attempt, Context, Target};
use crate::failure::Failure;
use crate::later::{Later, ScheduleName};
use crate::node::pace;
use crate::receipt::StepName;
use crate::receipt::record::Record;

/// Maximum time to reach the API server when the node is uncordoned. Afterwards, a new invocation tries again.
const UNCORDONED_WITHIN: Duration = Duration::from_mins(2);
/// Maximum time from the taint of a node to the node's drain. The scheduler prefers nodes without the taint for evicted pods.
const TAINTED_FOR: SignedDuration = SignedDuration::from_mins(30);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Postponement {
    /// The maintenance is planned for later.
    Scheduled,
    /// The limit of concurrent drains is reached, and the node is not claimed.
    Waits(OtherDrains),
    /// The node was claimed, but other drains reach the limit of concurrent drains. The claim is withdrawn.
    Surplus(OtherDrains),
}

impl Postponement {
    fn others(self) -> Option<OtherDrains> {
        match self {
            Self::Scheduled => None,
            Self::Waits(others) | Self::Surplus(others) => Some(others),
        }
    }
}

/// Creates a schedule that delivers the notice again at the time `begins`. Uncordons the node if the node is already claimed
/// for the maintenance.
pub(crate) async fn postpone(
    context: &Context,
    target: &Target<'_>,
    begins: Timestamp,
    why: Postponement,
    record: &mut Record,
) -> Result<Outcome, Failure> {
    let Attempt { notice, history, invocation, .. } = target.attempt;
    let gives_way_to = why.others();
    let by_second_schedule = gives_way_to.is_some() && !history.by_second_schedule;
    // The drain starts afresh, so the summaries of earlier invocations are dropped.
    let history = History { earlier: Vec::new(), remaining: Vec::new(), by_second_schedule, ..(*history).clone() };
    let payload = payload(continued::KEY, &history);
    // The node is given back first: a drain that still goes on could delete the schedule as its own.
    let cause = UncordonCause::of_notice(notice).filter(|_| !matches!(why, Postponement::Waits(_)));
    let uncordoned = match cause {
        Some(cause) => {
            let connect_by = invocation.drains_until().min(Instant::now() + UNCORDONED_WITHIN);
            let until = UncordonDeadlines { connect_by, ready_by: None };
            give_back(context, target.cluster, target.instance, &cause, until).await
        }
        None => Ok(UncordonResult::NoNode),
    };
    let name = if by_second_schedule { ScheduleName::second(notice) } else { ScheduleName::of(notice) };
    let end = invocation.continues_by();
    context.send(&payload, Later::At(begins, name), invocation.clock, end).await?;
    if gives_way_to.is_none() {
        context.scheduler.delete_others(notice, end).await?;
    }
    record.step(StepName::HandedOn, invocation.clock.now());

    let uncordoned = uncordoned?;
    if begins.duration_since(invocation.clock.now()) <= TAINTED_FOR {
        taint(context, target).await;
    }
    if let Some(node) = uncordoned.node() {
        record.found(node);
    }
    let (instance, starts) = (notice.instance.clone(), decision::planned_start(notice));
    Ok(Outcome::Postponed { instance, starts, begins, gives_way_to, uncordoned })
}

/// Taints the node, so that the scheduler prefers other nodes until the drain. Failures are only logged.
async fn taint(context: &Context, target: &Target<'_>) {
    let doing = format!("taint the node of instance {}", target.instance.id);
    let end = connect_deadline(target.attempt.invocation.drains_until());
    let claimant = target.claimant();
    let tainted = context.in_cluster(target.cluster, end, &doing, async |client| {
        pace::taint(&Api::all(client), target.instance, &claimant).await
    });
    if let Err(failure) = tainted.await {
        tracing::warn!(
            error = failure.text(),
            "cannot taint a node whose drain waits; pods of other nodes may be scheduled to it"
        );
    }
}

/// Removes the node's taint after the maintenance has begun without a drain. If the API server fails, an undo check removes
/// the taint later. Fails if the undo check cannot be scheduled. Other failures are only logged.
pub(super) async fn remove_taint(context: &Context, target: &Target<'_>, record: &mut Record) -> Result<(), Failure> {
    let Attempt { notice, invocation, .. } = target.attempt;
    let Some(cause) = UncordonCause::of_notice(notice) else { return Ok(()) };
    let until = UncordonDeadlines { connect_by: connect_deadline(invocation.drains_until()), ready_by: None };
    match give_back(context, target.cluster, target.instance, &cause, until).await {
        Ok(_) => {}
        Err(NotGivenBack::NotReached(failure)) => {
            undo_check::retry_later(context, target, failure, record).await?;
        }
        Err(why) => tracing::warn!(
            error = Failure::from(why).text(),
            "cannot remove the taint of planned maintenance from a node whose maintenance has begun"
        ),
    }
    Ok(())
}
