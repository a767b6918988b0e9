//! What begins later: a schedule brings the notice back when its time has come.

use jiff::Timestamp;
use spillway_core::node::uncordon::UncordonResult;
use spillway_core::outcome::Outcome;
use spillway_notice::continued::{self, History};
use spillway_notice::{Deadline, payload};

use super::uncordon::{NotReady, cause, give_back, reached_by};
use crate::context::{Attempt, Context, Target};
use crate::continuation::schedule::Name;
use crate::failure::Failure;
use crate::receipt::StepName;
use crate::receipt::record::Record;

/// Has the notice come again when it is time to begin. An update of the notice moves that time; if
/// the drain had begun by the time that was named before, the node is given back until then.
pub(crate) async fn postpone(
    context: &Context,
    target: &Target<'_>,
    begins: Timestamp,
    record: &mut Record,
) -> Result<Outcome, Failure> {
    let Attempt { notice, history, invocation, .. } = target.attempt;
    // It begins anew then: what was tried before its time is no part of the drain.
    let history = History { earlier: Vec::new(), ..(*history).clone() };
    let payload = payload(continued::KEY, &history);
    // Before: a drain that had begun may take the schedule for its own, until it sees that the node is given back.
    let uncordoned = match cause(notice) {
        Some(cause) => {
            let end = invocation.drains_until();
            let ends = (end, reached_by(end));
            give_back(context, target.cluster, target.instance, &cause, ends, NotReady::Answer).await
        }
        None => Ok(UncordonResult::NoNode),
    };
    let now = (invocation.clock.now(), invocation.hands_on_until());
    context.scheduler.put(&Name::of(notice), begins, &payload, now).await?;
    record.step(StepName::HandedOn, invocation.clock.now());

    let uncordoned = uncordoned?;
    if let Some(node) = uncordoned.node() {
        record.found(node);
    }
    let starts = match notice.deadline {
        Deadline::Hard(starts) => Some(starts),
        Deadline::Unknown | Deadline::HeldByHook | Deadline::Open => None,
    };
    Ok(Outcome::Postponed { instance: notice.instance.clone(), starts, begins, uncordoned })
}
