//! What begins later: a schedule brings the notice back when its time has come, or its turn.

use jiff::Timestamp;
use kube::{Api, ResourceExt as _};
use spillway_core::node::conditions::DrainStage;
use spillway_core::node::pace::Obstacle;
use spillway_core::node::uncordon::{UncordonCause, UncordonResult};
use spillway_core::outcome::Outcome;
use spillway_notice::continued::{self, History};
use spillway_notice::{Deadline, Kind, payload};

use super::give_back::{Patiently, give_back, reached_by};
use crate::context::{Attempt, Context, Target};
use crate::failure::Failure;
use crate::later::{Later, ScheduleName};
use crate::node::conditions::Conditions;
use crate::node::find;
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
    let name = if by_second_schedule { ScheduleName::second(notice) } else { ScheduleName::of(notice) };
    let end = invocation.continues_by();
    context.send(&payload, Later::At(begins, name), invocation.clock, end).await?;
    if gives_way_to.is_none() {
        context.scheduler.delete_others(notice, end).await?;
    }
    record.step(StepName::HandedOn, invocation.clock.now());

    if context.settings.node_conditions && matches!(notice.kind, Kind::Maintenance) {
        say_planned(context, target, begins).await;
    }
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

/// Has the node say when its drain begins. That it cannot is logged: the drain does not depend on it.
async fn say_planned(context: &Context, target: &Target<'_>, begins: Timestamp) {
    let clock = target.attempt.invocation.clock;
    let doing = format!("find the node of instance {}", target.instance.id);
    let end = reached_by(target.attempt.invocation.drains_until());
    let said = context.in_cluster(target.cluster, end, &doing, async |client| {
        if let Some(node) = find(&Api::all(client.clone()), target.instance).await? {
            Conditions::of(&client, &node.name_any()).set(DrainStage::Planned { begins }, clock.now()).await;
        }
        Ok(())
    });
    if let Err(failure) = said.await {
        tracing::warn!(error = failure.text(), "no node says that its drain is planned");
    }
}
