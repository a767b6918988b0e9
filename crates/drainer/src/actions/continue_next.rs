//! What an invocation could not do is left to a later one, while there is time for it.
//!
//! A drain that can wait goes through the queue for these, if there is one; one that cannot, and one that the queue does not
//! take, by an invocation of its own.

use std::time::Duration;

use spillway_core::continuation::patient;
use spillway_core::invocation::Invocation;
use spillway_core::outcome::Outcome;
use spillway_notice::Notice;
use spillway_notice::continued::History;
use spillway_startup::logs::chain;

use crate::aws::CallError;
use crate::aws::lifecycle::ActionState;
use crate::aws::queue::Queue;
use crate::context::{Attempt, Context};
use crate::continuation;
use crate::failure::Failure;
use crate::receipt::StepName;
use crate::receipt::record::{HookStatus, Record};

/// Hands the notice on to the next invocation, with what this one did in short; a lifecycle action that waits is held for it.
pub(crate) async fn continue_next(
    context: &Context,
    attempt: &Attempt<'_>,
    unfinished: &Failure,
    record: &mut Record,
) -> Result<Outcome, Failure> {
    let Attempt { notice, history, invocation, action, .. } = attempt;
    let in_short = record.in_short(notice, invocation);
    let blockage = record.blockage;
    let history = match record.parked {
        Some(parked) => {
            let blocked_since = parked.blocked_since.map(|since| invocation.clock.at(since));
            history.parked_after(in_short, blockage, blocked_since)
        }
        None => history.with(in_short, blockage),
    };
    let end = invocation.continues_by();
    let (continued, status) =
        tokio::join!(send(context, attempt, &history, record), async { action.as_ref()?.hold_for_the_next(end).await });
    continued?;
    record.step(StepName::HandedOn, invocation.clock.now());
    match status {
        Some(ActionState::Waiting) => record.hook = HookStatus::Held,
        Some(ActionState::Over) => record.hook = HookStatus::AlreadyOver(None),
        // It is left to its timeout, unless the next invocation comes before.
        Some(ActionState::Unknown) | None => {}
    }
    Ok(Outcome::Continued { unfinished: unfinished.text() })
}

/// Leaves a drain that can wait to its queue before anything is asked. `None`: it is worked on now, because it cannot wait, or the
/// queue does not take it.
pub(crate) async fn to_queue(
    context: &Context,
    notice: &Notice,
    history: &History,
    invocation: &Invocation,
) -> Option<Outcome> {
    let now = invocation.clock.now();
    let queue = context.patient_queue.as_ref().filter(|_| patient::can_wait(notice, &context.settings, now))?;
    let put = continuation::put(queue, history, Duration::ZERO, now, invocation.continues_by()).await;
    put.inspect_err(tell_unsent).is_ok().then_some(Outcome::Queued)
}

/// Has a drain from the queue that failed go on by an invocation of its own.
pub(crate) async fn out_of_queue(
    context: &Context,
    attempt: &Attempt<'_>,
    failure: Failure,
    record: &mut Record,
) -> Result<Outcome, Failure> {
    let Attempt { notice, history, invocation, .. } = attempt;
    let history = history.with(record.in_short(notice, invocation), record.blockage);
    match continuation::invoke_next(&context.itself, &[history], invocation.continues_by()).await {
        Ok(()) => {
            record.step(StepName::HandedOn, invocation.clock.now());
            Ok(Outcome::Continued { unfinished: failure.text() })
        }
        Err(error) => {
            let error = chain(&error);
            tracing::warn!(error, "cannot hand a failed drain on; the queue hands it over once more");
            Err(failure)
        }
    }
}

async fn send(context: &Context, attempt: &Attempt<'_>, history: &History, record: &Record) -> Result<(), CallError> {
    let (now, end) = (attempt.invocation.clock.now(), attempt.invocation.continues_by());
    if let Some(queue) = queue_for(context, attempt, record) {
        let delay = match record.parked {
            Some(_) => patient::parked_for(attempt.action.as_ref().map(|action| action.waits.between_heartbeats())),
            None => Duration::ZERO,
        };
        match continuation::put(queue, history, delay, now, end).await {
            Ok(()) => return Ok(()),
            Err(error) => tell_unsent(&error),
        }
    }
    continuation::invoke_next(&context.itself, std::slice::from_ref(history), end).await
}

/// The queue for a drain that can wait.
fn queue_for<'c>(context: &'c Context, attempt: &Attempt<'_>, record: &Record) -> Option<&'c Queue> {
    let clock = attempt.invocation.clock;
    let forced_from = record.parked.and_then(|parked| parked.forced_from).map(|at| clock.at(at));
    let can_wait = patient::can_wait(attempt.notice, &context.settings, clock.now())
        && !patient::is_urgent(forced_from, attempt.limits().drain, clock.now());
    context.patient_queue.as_ref().filter(|_| can_wait)
}

fn tell_unsent(error: &CallError) {
    tracing::warn!(error = chain(error), "the queue of drains that can wait takes no message; going on without it");
}
