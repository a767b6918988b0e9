//! What happens to a notice, from the event to the receipt, in order. Nothing calls back here.

use jiff::Timestamp;
use serde_json::Value;
use spillway_core::cluster::ClusterName;
use spillway_core::decision::{self, ClusterOwnership, Decision, Reason};
use spillway_core::instance::{Instance, managed_by, untrusted_owner_tag};
use spillway_core::invocation::Invocation;
use spillway_core::node::uncordon::UncordonCause;
use spillway_core::outcome::Outcome;
use spillway_notice::continued::History;
use spillway_notice::undo_check::UndoCheck;
use spillway_notice::{Incoming, Notice};
use spillway_receipt::Receipt;
use tokio::time::Instant;
use tracing::Instrument as _;

use crate::actions::identify::{Identified, identify};
use crate::actions::lifecycle::{Stage, last_answer};
use crate::actions::postpone::Postponement;
use crate::actions::undo_check::{self, DueCheck};
use crate::actions::{self, Next};
use crate::aws::lifecycle::LifecycleAction;
use crate::aws::managed_tag;
use crate::context::{Attempt, Context, Target};
use crate::failure::Failure;
use crate::invocation::span;
use crate::later;
use crate::publish::publish;
use crate::receipt::record::Record;
use crate::receipt::{Publication, StepName, Subject};

/// Handles one notice, or what may be one: reads it, does what follows from it, writes the receipt. An error keeps the
/// event.
pub async fn handle(context: &Context, event: Value, invocation: &Invocation) -> Result<Receipt, Failure> {
    let event_id = event.get("id").and_then(Value::as_str).map(str::to_owned);
    let span = span::open(&invocation.request_id, event_id.as_deref());
    answer(context, event, event_id.as_deref(), invocation).instrument(span).await
}

async fn answer(
    context: &Context,
    event: Value,
    event_id: Option<&str>,
    invocation: &Invocation,
) -> Result<Receipt, Failure> {
    let incoming = spillway_notice::read(event, &invocation.home);
    let incoming = incoming.map(|incoming| incoming.at(invocation.clock.started()));
    let mut record = Record::default();
    let mut heartbeats = Vec::new();

    if let Some(wrong) = &context.settings.wrong {
        let failure = Failure::Settings(wrong.clone());
        let mut publication = Publication::of(invocation, Subject::Unread { event_id }, &record, &[], Err(&failure));
        publish(&mut publication, context, None, invocation).await;
        return Err(failure);
    }

    let (subject, ended) = match &incoming {
        Ok(Incoming::Notice { notice, history }) => {
            record.step(StepName::Begun, invocation.clock.started());
            let ended;
            (ended, heartbeats) = follow(context, notice, history, invocation, &mut record).await;
            (Subject::One { notice, earlier: &history.earlier }, ended)
        }
        Ok(Incoming::Several(several)) => {
            record.step(StepName::Begun, invocation.clock.started());
            let ended = actions::fan_out::fan_out(context, several, invocation, &mut record).await;
            (Subject::Several(several), ended)
        }
        Ok(Incoming::UndoCheck { notice, check }) => {
            record.step(StepName::Begun, invocation.clock.started());
            let ended = look_again(context, notice, check, invocation, &mut record).await;
            (Subject::One { notice, earlier: &[] }, ended)
        }
        Ok(Incoming::MaintenanceLookup) => {
            record.step(StepName::Begun, invocation.clock.started());
            let ended = actions::look_up_maintenance::look_up(context, invocation, &mut record).await;
            (Subject::MaintenanceLookup, ended)
        }
        Ok(Incoming::Unhandled { event_id, why, is_unknown }) => {
            if *is_unknown {
                record.warn(why.clone());
            }
            let reason = Reason::NotHandled(why.clone());
            (Subject::Unread { event_id: Some(event_id) }, Ok(Outcome::Ignored(reason)))
        }
        Err(error) => (Subject::Unread { event_id }, Err(Failure::Notice(error.clone()))),
    };

    let mut publication = Publication::of(invocation, subject, &record, &heartbeats, ended.as_ref());
    publication.receipt.dry_run = context.settings.dry_run;
    publish(&mut publication, context, record.client.as_ref(), invocation).await;
    ended.map(|_| publication.receipt)
}

/// Follows one notice: until when it is worked on, what comes of it, and what becomes of what is left when the invocation is
/// over. With the times of the heartbeats that held its lifecycle action meanwhile.
async fn follow(
    context: &Context,
    notice: &Notice,
    history: &History,
    invocation: &Invocation,
    record: &mut Record,
) -> (Result<Outcome, Failure>, Vec<Timestamp>) {
    span::instance(notice);
    let settings = &context.settings;
    if let Some(reason) = decision::ignored_by_settings(notice, settings) {
        return (Ok(Outcome::LeftToOthers(reason)), Vec::new());
    }
    let (kind, time, deadline) = (notice.kind, notice.time, notice.deadline);
    if history.earlier.is_empty()
        && let Some(reason) = decision::implausible(kind, time, deadline, invocation.clock.started())
    {
        return (Ok(Outcome::Ignored(reason)), Vec::new());
    }
    let action = match decision::our_hook(notice, settings) {
        // A dry run leaves the hook alone: it has no action to send anything to.
        Some(hook) if !settings.dry_run => {
            Some(LifecycleAction::new(&context.autoscaling, hook, &notice.instance, history.is_kept))
        }
        _ => None,
    };
    let attempt = Attempt::new(notice, history, invocation, action, settings);

    // On the heap: in a debug build it is too large for a thread's stack.
    let acting = Box::pin(act(context, &attempt, record));
    let outcome = match attempt.hold_action_during(acting).await {
        Err((stage, failure)) if !settings.dry_run => unfinished(context, &attempt, stage, failure, record).await,
        outcome => outcome.map_err(|(_, failure)| failure),
    };
    (outcome, attempt.heartbeats())
}

/// Finds out whose node it is, and does what is decided for such a notice and such a node. A failure comes with how far it
/// had come.
async fn act(context: &Context, attempt: &Attempt<'_>, record: &mut Record) -> Result<Outcome, (Stage, Failure)> {
    let end = attempt.window.end;
    let undecided = |failure| (Stage::Undecided, failure);
    let whose = match whose(context, attempt.notice, (attempt.invocation, end), record).await {
        Ok(whose) => whose,
        Err(failure) => {
            let check = UndoCheck::first(&attempt.history.notice, attempt.notice);
            let asked =
                undo_check::describe_later(context, attempt.notice, &check, failure, attempt.invocation, record).await;
            return asked.map(Outcome::Uncordon).map_err(undecided);
        }
    };
    let (instance, cluster) = match whose {
        Whose::Ours(instance, cluster) => (instance, cluster),
        // Whoever acts on it completes its hooks.
        Whose::NotOurs(
            reason @ (Reason::NotOurCluster(_)
            | Reason::NotOurClusters { .. }
            | Reason::NoManagedTag { .. }
            | Reason::AnotherGroup { .. }),
        ) => {
            return Ok(Outcome::Ignored(reason));
        }
        Whose::NotOurs(reason) => {
            return actions::lifecycle::not_a_node(context, attempt, reason, record).await.map_err(undecided);
        }
    };
    if let Some(warning) = untrusted_owner_tag(&instance.tags) {
        record.warn(warning);
    }
    if let Some(reason) = actions::found::over(context, attempt, &instance).await.map_err(undecided)? {
        return Ok(Outcome::Ignored(reason));
    }
    let managed_by = managed_by(&instance.tags);
    let mut target = Target { attempt, instance: &instance, managed_by, cluster: &cluster };
    // Decided again when the node's labels name its manager and the tags of its instance do not.
    loop {
        match carry_out(context, &target, record).await.map_err(|failure| (Stage::Decided, failure))? {
            Next::Done(outcome) => return Ok(outcome),
            Next::DecideAgain(managed_by) => target.managed_by = managed_by,
        }
    }
}

enum Whose {
    /// This one, in that cluster, on whose nodes we act.
    Ours(Box<Instance>, ClusterName),
    NotOurs(Reason),
}

/// Finds out whose instance the notice is about, by what EC2 says and by the tags that the settings ask for.
async fn whose(
    context: &Context,
    notice: &Notice,
    (invocation, end): (&Invocation, Instant),
    record: &mut Record,
) -> Result<Whose, Failure> {
    let Context { settings, autoscaling, .. } = context;
    let instance = match identify(context, notice, (invocation.clock.now(), end)).await? {
        Some(Identified::ByEc2(instance)) => instance,
        Some(Identified::ByNode(instance, cluster)) => {
            record.step(StepName::FoundByNode, invocation.clock.now());
            record.instance = Some(instance.clone());
            record.cluster = Some(cluster.clone());
            span::cluster(&cluster);
            return Ok(Whose::Ours(Box::new(instance), cluster));
        }
        None => return Ok(Whose::NotOurs(Reason::NoInstance(notice.instance.to_string()))),
    };
    record.step(StepName::Described, invocation.clock.now());
    record.instance = Some(instance.clone());
    if let Some(reason) = decision::hook_of_another_group(notice, &instance) {
        return Ok(Whose::NotOurs(reason));
    }
    let cluster = match decision::cluster_of(&instance, settings) {
        ClusterOwnership::Ours(cluster) => cluster,
        ClusterOwnership::NotOurs(reason) => return Ok(Whose::NotOurs(reason)),
        ClusterOwnership::Ambiguous(refusal) => return Err(refusal.into()),
    };
    record.cluster = Some(cluster.clone());
    span::cluster(&cluster);
    if let Some(tag) = &settings.managed_tag
        && !managed_tag::is_managed(autoscaling, &instance, tag, end).await?
    {
        let (instance, tag) = (notice.instance.to_string(), tag.to_string());
        return Ok(Whose::NotOurs(Reason::NoManagedTag { instance, tag }));
    }
    Ok(Whose::Ours(Box::new(instance), cluster))
}

/// Does what the table says for such a notice and such a node.
async fn carry_out(context: &Context, target: &Target<'_>, record: &mut Record) -> Result<Next, Failure> {
    let Attempt { notice, invocation, settings, .. } = target.attempt;
    let decide = || decision::decide(notice, target.instance, target.managed_by, settings, invocation.clock.now());
    let mut decision = decide();
    if let Decision::Postpone(begins) = decision
        && later::slept(begins, invocation).await
    {
        if let Some(reason) = actions::found::called_off(context, target.attempt).await {
            return Ok(Outcome::Ignored(reason).into());
        }
        decision = decide();
    }
    (record.managed_by, record.decision) = (Some(target.managed_by), Some(decision.clone()));
    if settings.dry_run {
        return actions::dry_run::dry_run(context, decision, target, record).await;
    }
    match decision {
        Decision::Drain => Box::pin(actions::drain::drain(context, target, record)).await,
        Decision::Cordon => actions::cordon::cordon(context, target, record).await,
        Decision::Ignore(reason) => Ok(Outcome::Ignored(reason).into()),
        Decision::AwaitReady => actions::launch::await_ready(context, target, record).await.map(Next::Done),
        Decision::Complete => actions::launch::into_warm_pool(target, record).await.map(Next::Done),
        Decision::NodeClaim => actions::node_claim::hand_over(context, target, record).await,
        Decision::Undo => actions::uncordon::uncordon(context, target, record).await.map(Next::Done),
        Decision::OutOfService => actions::out_of_service::out_of_service(context, target, record).await,
        Decision::Postpone(begins) => {
            actions::postpone::postpone(context, target, begins, Postponement::Scheduled, record).await.map(Next::Done)
        }
    }
}

/// Leaves what failed to a later invocation. When there is no time for one it stays a failure, but a lifecycle action gets an
/// answer: nobody would come back to it.
async fn unfinished(
    context: &Context,
    attempt: &Attempt<'_>,
    stage: Stage,
    failure: Failure,
    record: &mut Record,
) -> Result<Outcome, Failure> {
    let settings = &context.settings;
    if attempt.leaves_time_after(&failure) {
        return actions::continue_next::continue_next(context, attempt, &failure, record).await;
    }
    let Some(result) = last_answer(attempt, &failure, stage, settings) else { return Err(failure) };
    let completing = actions::lifecycle::complete(attempt, result, record);
    match attempt.hold_action_during(completing).await {
        // Auto Scaling takes the answer for longer than the setting lets it wait for the drain.
        Err(unanswered) if attempt.leaves_time_after(&unanswered) => {
            actions::continue_next::continue_next(context, attempt, &unanswered, record).await
        }
        Err(unanswered) => {
            tracing::warn!(error = unanswered.text(), "cannot complete the lifecycle hook of a notice that has failed");
            Err(failure)
        }
        Ok(()) => Err(failure),
    }
}

/// An undo check: whether the node that was taken out for a notice may be given back by now.
async fn look_again(
    context: &Context,
    notice: &Notice,
    check: &UndoCheck,
    invocation: &Invocation,
    record: &mut Record,
) -> Result<Outcome, Failure> {
    span::instance(notice);
    let Some(cause) = UncordonCause::of_check(notice) else {
        return Ok(Outcome::Ignored(Reason::NothingToUndo(notice.kind.as_str())));
    };
    record.decision = Some(Decision::Undo);
    if context.settings.dry_run {
        return Ok(Outcome::WouldHave("looked whether the node may be given back".to_owned()));
    }
    let whose = match whose(context, notice, (invocation, invocation.drains_until()), record).await {
        Ok(whose) => whose,
        Err(failure) => {
            let asked = undo_check::describe_later(context, notice, check, failure, invocation, record).await;
            return asked.map(Outcome::Uncordon);
        }
    };
    match whose {
        Whose::Ours(instance, cluster) => {
            let due = DueCheck { notice, check, instance: &instance, cluster: &cluster, cause };
            undo_check::check(context, due, invocation, record).await.map(Outcome::Uncordon)
        }
        Whose::NotOurs(reason) => Ok(Outcome::Ignored(reason)),
    }
}

#[cfg(test)]
mod bad_input;
#[cfg(test)]
mod tests;
