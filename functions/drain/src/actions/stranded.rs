//! The hooks of instances whose node cannot be got at: in no cluster of ours, or in one that we may not enter.

use std::future::pending;
use std::pin::pin;

use crate::context::target::Attempt;
use crate::decision::{Reason, our_hook};
use crate::failure::Failure;
use crate::handler::Spillway;
use crate::receipt::Receipt;
use crate::receipt::ending::{self, Outcome, ignored};
use crate::settings::LifecycleResult;

impl Spillway {
    /// The instance is no node of ours. A hook that waits gets the answer of the setting, if that names one.
    pub(crate) async fn stranded(&self, attempt: &Attempt<'_>, reason: &Reason, receipt: &mut Receipt) -> Outcome {
        let (Some(result), Some(_)) = (self.settings.stranded_hooks, our_hook(attempt.notice, &self.settings)) else {
            return Ok(ignored(reason));
        };
        if self.settings.dry_run {
            return Ok(ending::would_have(&format!("completed the lifecycle hook with {}: {reason}", result.as_str())));
        }
        self.answer_stranded(attempt, result, receipt).await?;
        Ok(ending::stranded(reason, receipt))
    }

    /// We may not enter its cluster. That stays a failure, which somebody has to mend; the hook need not wait for it.
    pub(crate) async fn shut_out(&self, attempt: &Attempt<'_>, failure: Failure, receipt: &mut Receipt) -> Outcome {
        if let Some(result) = self.settings.stranded_hooks
            && let Err(error) = self.answer_stranded(attempt, result, receipt).await
        {
            tracing::warn!(error = %error, "cannot complete the lifecycle hook of an instance that cannot be got at");
        }
        Err(failure)
    }

    async fn answer_stranded(
        &self,
        attempt: &Attempt<'_>,
        result: LifecycleResult,
        receipt: &mut Receipt,
    ) -> Result<(), Failure> {
        // There is nothing to hold the hook for.
        self.complete(attempt, result, pin!(pending()), receipt).await
    }
}
