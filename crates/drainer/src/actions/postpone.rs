//! What begins later: a schedule brings the notice back when its time has come, or its turn.

use jiff::Timestamp;
use spillway_core::node::pace::Obstacle;
use spillway_core::node::uncordon::{UncordonCause, UncordonResult};
use spillway_core::outcome::Outcome;
use spillway_notice::continued::{self, History};
use spillway_notice::{Deadline, payload};

use super::give_back::{Patiently, give_back, reached_by};
use crate::context::{Attempt, Context, Target};
use crate::continuation::schedule::Name;
use crate::failure::Failure;
use crate::receipt::StepName;
use crate::receipt::record::Record;

/// Has the notice come again when it is time to begin. An update of the notice moves that time; if
/// the drain had begun by the time that was named before, the node is given back until then. So is one whose drain gives way.
pub(crate) async fn postpone(
    context: &Context,
    target: &Target<'_>,
    begins: Timestamp,
    gives_way_to: Option<Obstacle>,
    record: &mut Record,
) -> Result<Outcome, Failure> {
    let Attempt { notice, history, invocation, .. } = target.attempt;
    let by_second_schedule = gives_way_to.is_some() && !history.by_second_schedule;
    // It begins again then: what was tried before its time is no part of the drain.
    let history = History { earlier: Vec::new(), by_second_schedule, ..(*history).clone() };
    let payload = payload(continued::KEY, &history);
    // Before: a drain that had begun may take the schedule for its own, until it sees that the node is given back.
    let uncordoned = match UncordonCause::of_notice(notice) {
        Some(cause) => {
            let until = Patiently { reached: reached_by(invocation.drains_until()), ready: None };
            give_back(context, target.cluster, target.instance, &cause, until).await
        }
        None => Ok(UncordonResult::NoNode),
    };
    let (now, end) = (invocation.clock.now(), invocation.continues_by());
    let name = if by_second_schedule { Name::second(notice) } else { Name::of(notice) };
    context.scheduler.put(&name, begins, &payload, now, end).await?;
    if gives_way_to.is_none() {
        context.scheduler.delete_others(notice, end).await?;
    }
    record.step(StepName::HandedOn, invocation.clock.now());

    let uncordoned = uncordoned?;
    if let Some(node) = uncordoned.node() {
        record.found(node);
    }
    let starts = match notice.deadline {
        Deadline::Hard(starts) => Some(starts),
        Deadline::Unknown | Deadline::HeldByHook | Deadline::Open => None,
    };
    Ok(Outcome::Postponed { instance: notice.instance.clone(), starts, begins, gives_way_to, uncordoned })
}
