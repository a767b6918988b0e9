//! What begins later: a schedule brings the notice back when its time has come, or its turn.

use jiff::{SignedDuration, Timestamp};
use kube::Api;
use spillway_core::decision;
use spillway_core::node::pace::OtherDrains;
use spillway_core::node::uncordon::{UncordonCause, UncordonResult};
use spillway_core::outcome::Outcome;
use spillway_notice::continued::{self, History};
use spillway_notice::payload;

use super::give_back::{Patiently, give_back, reached_by};
use crate::context::{Attempt, Context, Target};
use crate::failure::Failure;
use crate::later::{Later, ScheduleName};
use crate::node::pace;
use crate::receipt::StepName;
use crate::receipt::record::Record;

/// How long before its turn a node is tainted, so that pods of other nodes do not come to it.
const TAINTED_FOR: SignedDuration = SignedDuration::from_mins(30);

/// Why a drain begins later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Postponement {
    /// Its time has not come.
    Scheduled,
    /// Others go on, and the node is not claimed.
    Waits(OtherDrains),
    /// Others go on, and the claim of the node is one too many.
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

/// Has the notice come again when it is time to begin. An update of the notice moves that time; if
/// the drain had begun by the time that was named before, the node is given back until then. So is a node with a surplus claim.
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
    // It begins again then: what was tried before its time is no part of the drain.
    let history = History { earlier: Vec::new(), remaining: Vec::new(), by_second_schedule, ..(*history).clone() };
    let payload = payload(continued::KEY, &history);
    // Before: a drain that had begun may take the schedule for its own, until it sees that the node is given back.
    let cause = UncordonCause::of_notice(notice).filter(|_| !matches!(why, Postponement::Waits(_)));
    let uncordoned = match cause {
        Some(cause) => {
            let until = Patiently { reached: reached_by(invocation.drains_until()), ready: None };
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

/// Taints the node until its turn. A failure is logged: the drain does not depend on the taint.
async fn taint(context: &Context, target: &Target<'_>) {
    let doing = format!("taint the node of instance {}", target.instance.id);
    let end = reached_by(target.attempt.invocation.drains_until());
    let claimant = target.claimant();
    let tainted = context.in_cluster(target.cluster, end, &doing, async |client| {
        pace::taint(&Api::all(client), target.instance, &claimant).await
    });
    if let Err(failure) = tainted.await {
        tracing::warn!(error = failure.text(), "pods of other nodes may come to a node whose drain waits");
    }
}

/// Removes the taint of a node whose turn never comes. A failure is logged: the doctor finds the taint.
pub(super) async fn remove_taint(context: &Context, target: &Target<'_>) {
    let Attempt { notice, invocation, .. } = target.attempt;
    let Some(cause) = UncordonCause::of_notice(notice) else { return };
    let until = Patiently { reached: reached_by(invocation.drains_until()), ready: None };
    if let Err(why) = give_back(context, target.cluster, target.instance, &cause, until).await {
        tracing::warn!(
            error = Failure::from(why).text(),
            "a node whose maintenance has begun may keep the taint of planned maintenance"
        );
    }
}
