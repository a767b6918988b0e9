//! Continues a notice in the next invocation.

use spillway_core::outcome::Outcome;
use spillway_notice::continued::{self, History};
use spillway_notice::payload;

use crate::aws::lifecycle::ActionState;
use crate::context::{Attempt, Context};
use crate::failure::Failure;
use crate::later::Later;
use crate::receipt::StepName;
use crate::receipt::record::{HookStatus, Record};

/// Invokes the function with the notice and a summary of this invocation. Sends a last heartbeat, which restarts the hook's
/// timeout.
pub(crate) async fn continue_next(
    context: &Context,
    attempt: &Attempt<'_>,
    unfinished: &Failure,
    record: &mut Record,
) -> Result<Outcome, Failure> {
    let Attempt { notice, history, invocation, action, .. } = attempt;
    let history = history.with(record.summary(notice, invocation), record.blockage);
    let history = History { remaining: record.remaining(&history), is_kept: attempt.keeps_instance(), ..history };
    let (payload, end) = (payload(continued::KEY, &history), invocation.continues_by());
    let (continued, status) = tokio::join!(context.send(&payload, Later::Now, invocation.clock, end), async {
        action.as_ref()?.hold_for_the_next(end).await
    });
    continued?;
    record.step(StepName::HandedOn, invocation.clock.now());
    match status {
        Some(ActionState::Waiting) => record.hook = HookStatus::Held,
        Some(ActionState::Over) => record.hook = HookStatus::AlreadyOver(None),
        // Without a heartbeat, the hook ends by its timeout unless the next invocation starts before.
        Some(ActionState::Unknown) | None => {}
    }
    Ok(Outcome::Continued { unfinished: unfinished.text() })
}
