//! Undo checks: at a time it is looked whether a node that was taken out for a notice may be given back.

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

use super::give_back::{NotGivenBack, Patiently, give_back, reached_by};
use crate::context::{Attempt, Context, Target};
use crate::failure::Failure;
use crate::later::{Later, ScheduleName};
use crate::receipt::StepName;
use crate::receipt::record::Record;

/// How long scheduling the undo check may delay the drain.
const PATIENCE: Duration = Duration::from_secs(10);
/// Over how long such times are spread.
const SPREAD: Duration = Duration::from_mins(10);

/// After a claim: schedules the undo check, and deletes the maintenance schedule that this drain replaces. Comes before the
/// drain, which a dying invocation may not survive; a failure here is for after the drain. The check comes first: without it
/// nobody gives the node back, while a schedule that is left only finds the node claimed.
pub(super) async fn arrange(context: &Context, attempt: &Attempt<'_>, claim: &Claim) -> Result<(), Failure> {
    let (notice, clock) = (attempt.notice, attempt.invocation.clock);
    let end = (Instant::now() + PATIENCE).min(attempt.invocation.continues_by());
    let arranged = async {
        if let Some(at) = decision::first_check(notice, clock.now(), &context.settings) {
            let check = UndoCheck::first(&attempt.history.notice, notice);
            send(context, notice, &check, at, clock, end).await?;
        }
        if notice.kind == Kind::Maintenance {
            context.scheduler.delete_all_of(notice, end).await?;
        }
        Ok::<_, Failure>(())
    };
    arranged.await.inspect_err(|error| {
        let (node, error) = (&claim.node, error.text());
        tracing::warn!(node.name = node, error, "cannot arrange that node {node} is given back; going on");
    })
}

/// A check whose time has come, and the node that it is about.
#[derive(Debug)]
pub(crate) struct DueCheck<'a> {
    pub(crate) notice: &'a Notice,
    pub(crate) check: &'a UndoCheck,
    pub(crate) instance: &'a Instance,
    pub(crate) cluster: &'a ClusterName,
    pub(crate) cause: UncordonCause,
}

/// Looks whether the node may be given back. If it has not come back yet, it is looked again.
pub(crate) async fn check(
    context: &Context,
    due: DueCheck<'_>,
    invocation: &Invocation,
    record: &mut Record,
) -> Result<UncordonOutcome, Failure> {
    let DueCheck { notice, check, instance, cluster, cause } = due;
    let follows_a_claim = decision::follows_a_claim(notice.kind);
    // When it runs again, that is another notice.
    if !follows_a_claim && instance.state != InstanceState::Up {
        return Ok(UncordonOutcome::Ignored(Reason::NotUp(instance.id.to_string())));
    }
    let end = invocation.drains_until();
    let until = Patiently { reached: reached_by(end), ready: None };
    let result = match give_back(context, cluster, instance, &cause, until).await {
        Ok(result) => result,
        Err(NotGivenBack::NotLetIn { reason, .. }) if !follows_a_claim => return Ok(UncordonOutcome::Ignored(reason)),
        Err(NotGivenBack::NotReached(failure)) => {
            let Some(at) = decision::next_check(notice.kind, check, invocation.clock.now()) else {
                let unreachable = UncordonOutcome::Ignored(Reason::Unreachable(cluster.clone()));
                return if follows_a_claim { Err(failure) } else { Ok(unreachable) };
            };
            look_later(context, notice, &check.next(), at, invocation, record).await?;
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
    look_later(context, notice, &check.next(), at, invocation, record).await?;
    Ok(UncordonOutcome::LookedAgain { node, why, at })
}

/// Has a schedule try the target's cluster again, which could not be reached when something was over.
pub(super) async fn try_later(
    context: &Context,
    target: &Target<'_>,
    failure: Failure,
    record: &mut Record,
) -> Result<UncordonOutcome, Failure> {
    let Attempt { notice, history, invocation, .. } = target.attempt;
    let check = UndoCheck::first(&history.notice, notice);
    let Some(at) = decision::next_check(notice.kind, &check, invocation.clock.now()) else { return Err(failure) };
    look_later(context, notice, &check.next(), at, invocation, record).await?;
    Ok(UncordonOutcome::NotReached { cluster: target.cluster.clone(), why: failure.text(), at })
}

/// Has a schedule look once more at a node on which nothing of ours is, although its maintenance is over. The notice of that
/// maintenance may have waited for AWS, and would claim the node after this.
pub(super) async fn look_once_more(
    context: &Context,
    target: &Target<'_>,
    node: String,
    record: &mut Record,
) -> Result<UncordonOutcome, Failure> {
    let Attempt { notice, history, invocation, .. } = target.attempt;
    let (check, why) = (UndoCheck::first(&history.notice, notice), NotYet::NotClaimed);
    let at = decision::look_again(invocation.clock.now());
    look_later(context, notice, &check, at, invocation, record).await?;
    Ok(UncordonOutcome::LookedAgain { node, why, at })
}

/// Has a schedule ask AWS again about an instance that runs, if it gave no answer. The times are spread, so that a burst of
/// launches does not come back as one.
pub(crate) async fn ask_later(
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
    look_later(context, notice, &check.next(), at, invocation, record).await?;
    Ok(UncordonOutcome::NotDescribed { why: failure.text(), at })
}

async fn look_later(
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
