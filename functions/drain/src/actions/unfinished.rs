//! What an invocation could not do: a later one's, while there is time for it; then the hook is held no longer.

use std::pin::pin;

use crate::aws::lifecycle::ActionStatus;
use crate::context::target::Attempt;
use crate::continuation;
use crate::failure::Failure;
use crate::handler::Spillway;
use crate::notice::Kind;
use crate::receipt::ending::{self, Outcome};
use crate::receipt::{HookState, Receipt, StepName};
use crate::settings::LifecycleResult;

impl Spillway {
    /// Leaves the rest to a later invocation. When there is no time for one, it stays a failure, but the hook gets an
    /// answer: nobody would come back to it.
    pub(crate) async fn unfinished(&self, attempt: &Attempt<'_>, failure: Failure, receipt: &mut Receipt) -> Outcome {
        if attempt.leaves_time_after(&failure) {
            return self.hand_on(attempt, &failure, receipt).await;
        }
        match self.give_up(attempt, &failure, receipt).await {
            // Auto Scaling takes the answer for longer than the setting lets it wait for the drain.
            Err(unanswered) if attempt.leaves_time_after(&unanswered) => {
                self.hand_on(attempt, &unanswered, receipt).await
            }
            Err(unanswered) => {
                tracing::warn!(error = %unanswered, "cannot complete the lifecycle hook of a drain that has failed");
                Err(failure)
            }
            Ok(()) => Err(failure),
        }
    }

    /// Answers a hook that has been held as long as it may. What somebody has to mend may be mended by Lambda's retry.
    async fn give_up(&self, attempt: &Attempt<'_>, failure: &Failure, receipt: &mut Receipt) -> Result<(), Failure> {
        let unanswered = receipt.hook.as_ref().is_some_and(|hook| hook.state == HookState::Left);
        match self.last_answer(attempt, receipt).filter(|_| unanswered && failure.may_pass()) {
            Some(result) => self.complete(attempt, result, pin!(attempt.hold(&self.settings)), receipt).await,
            None => Ok(()),
        }
    }

    /// What a hook is told whose node could not be got at.
    fn last_answer(&self, attempt: &Attempt<'_>, receipt: &Receipt) -> Option<LifecycleResult> {
        match attempt.notice.kind {
            // Whose node it is was not seen: it may be nobody's.
            _ if receipt.decision.is_none() => self.settings.stranded_hooks,
            Kind::Launch | Kind::LaunchFromWarmPool | Kind::RootVolumeReplaced => Some(self.settings.unready_result),
            _ => Some(self.settings.undrained_result),
        }
    }

    async fn hand_on(&self, attempt: &Attempt<'_>, unfinished: &Failure, receipt: &mut Receipt) -> Outcome {
        let Attempt { history, invocation, action, .. } = attempt;
        let history = history.with(receipt.in_short(invocation.clock.started(), invocation.clock.now()));
        let end = invocation.hands_on_until();
        let (handed_on, waiting) =
            tokio::join!(continuation::hand_on(&self.eventbridge, std::slice::from_ref(&history), end), async {
                action.as_ref()?.hold_for_the_next(end).await
            });
        handed_on?;
        receipt.step(StepName::HandedOn, invocation.clock.now());
        match waiting {
            Some(ActionStatus::Waiting) => receipt.hook_is_held(),
            Some(ActionStatus::Over) => receipt.hook_is_over(),
            // It is left to its timeout, unless the next invocation comes before.
            None => {}
        }
        Ok(ending::continued(unfinished))
    }
}
