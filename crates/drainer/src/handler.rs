//! Handles a notice from the event to the receipt:
//!
//! 1. [`handle`] reads the event, and at the end publishes the receipt.
//! 2. [`follow`] sends heartbeats for the lifecycle hook during steps 3 and 4.
//! 3. [`act`] finds the instance and its cluster.
//! 4. [`carry_out`] decides and runs a function in `actions`, which also completes the hook's lifecycle action.
//! 5. [`unfinished`] continues a failed notice in a later invocation, or completes the lifecycle action.

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
use crate::actions::lifecycle::{HandlingStage, result_after_failure};
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

/// Handles one event: reads the notice, acts on the notice, and publishes the receipt. If this fails, Lambda retries the event.
pub async fn handle(context: &Context, event: Value, invocation: &Invocation) -> Result<Receipt, Failure> {
    let event_id = event.get("id").and_then(Value::as_str).map(str::to_owned);
    let span = span::open(&invocation.request_id, event_id.as_deref());
    let handling = async {
        let mut record = Record::default();
        let incoming = read(context, event, invocation);
        let (subject, ended) = match incoming {
            // Boxed: rustc limits the depth of nested futures.
            Ok(ref incoming) => {
                (subject_of(incoming), Box::pin(act_on(context, incoming, invocation, &mut record)).await)
            }
            Err(failure) => (Subject::Unread { event_id: event_id.as_deref() }, Err(failure)),
        };
        let mut publication = Publication::of(invocation, subject, &record, ended.as_ref());
        publication.receipt.dry_run = context.settings.dry_run;
        publish(&mut publication, context, record.client.as_ref(), invocation).await;
        ended.map(|_| publication.receipt)
    };
    handling.instrument(span).await
}

/// Parses the event. Fails if the event or the settings are invalid.
fn read(context: &Context, event: Value, invocation: &Invocation) -> Result<Incoming, Failure> {
    if let Some(wrong) = &context.settings.wrong {
        return Err(Failure::Settings(wrong.clone()));
    }
    Ok(spillway_notice::read(event, &invocation.home)?.at(invocation.clock.started()))
}

fn subject_of(incoming: &Incoming) -> Subject<'_> {
    match incoming {
        Incoming::Notice { notice, history } => Subject::One { notice, earlier: &history.earlier },
        Incoming::UndoCheck { notice, .. } => Subject::One { notice, earlier: &[] },
        Incoming::Several(several) => Subject::Several(several),
        Incoming::MaintenanceLookup => Subject::MaintenanceLookup,
        Incoming::Unhandled { event_id, .. } => Subject::Unread { event_id: Some(event_id) },
    }
}

async fn act_on(
    context: &Context,
    incoming: &Incoming,
    invocation: &Invocation,
    record: &mut Record,
) -> Result<Outcome, Failure> {
    if !matches!(incoming, Incoming::Unhandled { .. }) {
        record.step(StepName::Begun, invocation.clock.started());
    }
    match incoming {
        Incoming::Notice { notice, history } => follow(context, notice, history, invocation, record).await,
        Incoming::UndoCheck { notice, check } => run_undo_check(context, notice, check, invocation, record).await,
        Incoming::Several(several) => actions::fan_out::fan_out(context, several, invocation, record).await,
        Incoming::MaintenanceLookup => actions::look_up_maintenance::look_up(context, invocation, record).await,
        Incoming::Unhandled { why, is_unknown, .. } => {
            if *is_unknown {
                record.warn(why.clone());
            }
            Ok(Outcome::Ignored(Reason::NotHandled(why.clone())))
        }
    }
}

/// Acts on one notice while heartbeats keep its lifecycle hook waiting. Leaves unfinished work to a later invocation.
async fn follow(
    context: &Context,
    notice: &Notice,
    history: &History,
    invocation: &Invocation,
    record: &mut Record,
) -> Result<Outcome, Failure> {
    span::instance(notice);
    let settings = &context.settings;
    if let Some(reason) = decision::ignored_by_settings(notice, settings) {
        return Ok(Outcome::LeftToOthers(reason));
    }
    if history.earlier.is_empty()
        && let Some(reason) =
            decision::implausible(notice.kind, notice.time, notice.deadline, invocation.clock.started())
    {
        return Ok(Outcome::Ignored(reason));
    }
    // A dry run leaves the hook alone.
    let hook = decision::our_hook(notice, settings).filter(|_| !settings.dry_run);
    let action = hook.map(|hook| LifecycleAction::new(&context.autoscaling, hook, &notice.instance, history.is_kept));
    let attempt = Attempt::new(notice, history, invocation, action, settings);

    // Boxed: in a debug build the future is too large for a thread's stack.
    let acting = Box::pin(act(context, &attempt, record));
    let ended = match attempt.with_heartbeats(acting).await {
        Err((stage, failure)) if !settings.dry_run => unfinished(context, &attempt, stage, failure, record).await,
        ended => ended.map_err(|(_, failure)| failure),
    };
    record.heartbeats = attempt.heartbeats();
    ended
}

/// Finds the instance and its cluster, then decides and acts. After a failure, also returns the [`HandlingStage`].
async fn act(
    context: &Context,
    attempt: &Attempt<'_>,
    record: &mut Record,
) -> Result<Outcome, (HandlingStage, Failure)> {
    let Attempt { notice, history, invocation, window, .. } = attempt;
    let undecided = |failure| (HandlingStage::Undecided, failure);
    let (instance, cluster) = match resolve(context, notice, invocation, window.end, record).await {
        Ok(Ownership::Ours(instance, cluster)) => (instance, cluster),
        // Another owner handles the instance and completes its hook.
        Ok(Ownership::NotOurs(
            reason @ (Reason::NotOurCluster(_)
            | Reason::NotOurClusters { .. }
            | Reason::NoManagedTag { .. }
            | Reason::AnotherGroup { .. }),
        )) => return Ok(Outcome::Ignored(reason)),
        // There is no instance or no cluster. The setting `HooksWithoutNode` decides whether the hook is completed.
        Ok(Ownership::NotOurs(reason)) => {
            return actions::lifecycle::not_a_node(context, attempt, reason, record).await.map_err(undecided);
        }
        // A call failed, or the tags are ambiguous. If the notice says that the instance runs again (`Kind::Running`),
        // schedules an undo check: a later invocation that looks up the instance and uncordons its node. For any other notice,
        // fails.
        Err(failure) => {
            let check = UndoCheck::first(&history.notice, notice);
            let scheduled = undo_check::check_later_or_fail(context, notice, &check, failure, invocation, record).await;
            return scheduled.map(Outcome::Uncordon).map_err(undecided);
        }
    };
    if let Some(warning) = untrusted_owner_tag(&instance.tags) {
        record.warn(warning);
    }
    if let Some(reason) =
        actions::recheck_maintenance::over_or_moved(context, attempt, &instance).await.map_err(undecided)?
    {
        return Ok(Outcome::Ignored(reason));
    }
    let managed_by = managed_by(&instance.tags);
    let mut target = Target { attempt, instance: &instance, managed_by, cluster: &cluster };
    // The decision is made again if the node's labels name another manager than the instance's tags.
    loop {
        match carry_out(context, &target, record).await.map_err(|failure| (HandlingStage::Decided, failure))? {
            Next::Done(outcome) => return Ok(outcome),
            Next::DecideAgain(managed_by) => target.managed_by = managed_by,
        }
    }
}

enum Ownership {
    Ours(Box<Instance>, ClusterName),
    NotOurs(Reason),
}

/// Finds the instance and its cluster. Returns [`Ownership::NotOurs`] if Spillway does not act on the instance.
async fn resolve(
    context: &Context,
    notice: &Notice,
    invocation: &Invocation,
    end: Instant,
    record: &mut Record,
) -> Result<Ownership, Failure> {
    let Context { settings, autoscaling, .. } = context;
    let instance = match identify(context, notice, (invocation.clock.now(), end)).await? {
        Some(Identified::ByEc2(instance)) => instance,
        Some(Identified::ByNode(instance, cluster)) => {
            record.step(StepName::FoundByNode, invocation.clock.now());
            record.instance = Some(instance.clone());
            record.cluster = Some(cluster.clone());
            span::cluster(&cluster);
            return Ok(Ownership::Ours(Box::new(instance), cluster));
        }
        None => return Ok(Ownership::NotOurs(Reason::NoInstance(notice.instance.clone()))),
    };
    record.step(StepName::Described, invocation.clock.now());
    record.instance = Some(instance.clone());
    if let Some(reason) = decision::hook_of_another_group(notice, &instance) {
        return Ok(Ownership::NotOurs(reason));
    }
    let cluster = match decision::cluster_of(&instance, settings) {
        ClusterOwnership::Ours(cluster) => cluster,
        ClusterOwnership::NotOurs(reason) => return Ok(Ownership::NotOurs(reason)),
        ClusterOwnership::Ambiguous(refusal) => return Err(refusal.into()),
    };
    record.cluster = Some(cluster.clone());
    span::cluster(&cluster);
    if let Some(tag) = &settings.managed_tag
        && !managed_tag::is_managed(autoscaling, &instance, tag, end).await?
    {
        let (instance, tag) = (notice.instance.clone(), tag.to_string());
        return Ok(Ownership::NotOurs(Reason::NoManagedTag { instance, tag }));
    }
    Ok(Ownership::Ours(Box::new(instance), cluster))
}

/// Decides and runs the action. If a postponed drain is due within two minutes, sleeps until then and decides again.
async fn carry_out(context: &Context, target: &Target<'_>, record: &mut Record) -> Result<Next, Failure> {
    let Attempt { notice, invocation, settings, .. } = target.attempt;
    let decide = || decision::decide(notice, target.instance, target.managed_by, settings, invocation.clock.now());
    let mut decision = decide();
    if let Decision::Postpone(begins) = decision
        && later::sleep_if_short(begins, invocation).await
    {
        if let Some(reason) = actions::recheck_maintenance::called_off(context, target.attempt).await {
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
        Decision::Complete => actions::launch::complete_for_warm_pool(target, record).await.map(Next::Done),
        Decision::NodeClaim => actions::node_claim::hand_over(context, target, record).await,
        Decision::Undo => actions::uncordon::uncordon(context, target, record).await.map(Next::Done),
        Decision::OutOfService => actions::out_of_service::out_of_service(context, target, record).await,
        Decision::Postpone(begins) => {
            actions::postpone::postpone(context, target, begins, Postponement::Scheduled, record).await.map(Next::Done)
        }
    }
}

/// Continues a failed notice in a later invocation. If no time is left, completes the lifecycle action with
/// [`result_after_failure`] and returns the failure.
async fn unfinished(
    context: &Context,
    attempt: &Attempt<'_>,
    stage: HandlingStage,
    failure: Failure,
    record: &mut Record,
) -> Result<Outcome, Failure> {
    let settings = &context.settings;
    if attempt.leaves_time_after(&failure) {
        return actions::continue_next::continue_next(context, attempt, &failure, record).await;
    }
    let Some(result) = result_after_failure(attempt, &failure, stage, settings) else { return Err(failure) };
    let completing = actions::lifecycle::complete(attempt, result, record);
    match attempt.with_heartbeats(completing).await {
        Ok(()) => Err(failure),
        // The completion is retried until `Limits::retry`, which can be later than `Limits::drain`, the end of the drain.
        Err(not_completed) if attempt.leaves_time_after(&not_completed) => {
            actions::continue_next::continue_next(context, attempt, &not_completed, record).await
        }
        Err(not_completed) => {
            let error = not_completed.text();
            tracing::warn!(error, "cannot complete the lifecycle hook of a notice that has failed");
            Err(failure)
        }
    }
}

/// Runs an undo check: uncordons the node if the cause of its cordon is over.
async fn run_undo_check(
    context: &Context,
    notice: &Notice,
    check: &UndoCheck,
    invocation: &Invocation,
    record: &mut Record,
) -> Result<Outcome, Failure> {
    span::instance(notice);
    let Some(cause) = UncordonCause::of_check(notice) else {
        return Ok(Outcome::Ignored(Reason::NothingToUndo(notice.kind)));
    };
    record.decision = Some(Decision::Undo);
    if context.settings.dry_run {
        return Ok(Outcome::WouldHave("looked whether the node may be given back".to_owned()));
    }
    let ended = match resolve(context, notice, invocation, invocation.drains_until(), record).await {
        Ok(Ownership::Ours(instance, cluster)) => {
            let due = DueCheck { notice, check, instance: &instance, cluster: &cluster, cause };
            undo_check::check(context, due, invocation, record).await
        }
        Ok(Ownership::NotOurs(reason)) => return Ok(Outcome::Ignored(reason)),
        Err(failure) => undo_check::check_later_or_fail(context, notice, check, failure, invocation, record).await,
    };
    ended.map(Outcome::Uncordon)
}

#[cfg(test)]
mod bad_input;
#[cfg(test)]
mod tests;
