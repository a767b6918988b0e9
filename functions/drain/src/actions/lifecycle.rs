//! Completing a lifecycle action, whether or not there was a node to see to.

use std::pin::{Pin, pin};

use futures_util::future::{Either, select};
use spillway_eks::ClusterName;

use crate::aws::instance::Instance;
use crate::context::target::Attempt;
use crate::decision::Reason;
use crate::failure::Failure;
use crate::handler::Spillway;
use crate::notice::Deadline;
use crate::receipt::ending::{Outcome, ignored};
use crate::receipt::{Receipt, StepName};
use crate::settings::LifecycleResult;

impl Spillway {
    /// Lets the instance go. The hook is held until Auto Scaling has taken the answer.
    pub(super) async fn complete(
        &self,
        attempt: &Attempt<'_>,
        result: LifecycleResult,
        held: Pin<&mut impl Future<Output = ()>>,
        receipt: &mut Receipt,
    ) -> Result<(), Failure> {
        let Some(action) = &attempt.action else { return Ok(()) };
        let completion = pin!(action.complete(result, attempt.invocation.completes_until()));
        let completion = match select(completion, held).await {
            Either::Left((completion, _)) => completion,
            // Our own answer may be why it waits no longer.
            Either::Right(((), completion)) => completion.await,
        };
        receipt.hook(completion.as_ref().map(|completion| *completion).map_err(|_| ()), result);
        completion?;
        receipt.step(StepName::Completed, attempt.invocation.clock.now());
        Ok(())
    }

    /// The cluster has no such node: it never joined, or has left. Nobody needs the instance,
    /// so its group must not wait for it.
    pub(super) async fn no_node(
        &self,
        attempt: &Attempt<'_>,
        instance: &Instance,
        cluster: ClusterName,
        held: Pin<&mut impl Future<Output = ()>>,
        receipt: &mut Receipt,
    ) -> Outcome {
        // A notice whose deadline is its own time came when it could.
        if let Deadline::Hard(at) = attempt.notice.deadline
            && attempt.notice.time < at
            && at < attempt.invocation.clock.now()
        {
            return Err(Failure::TooLate { instance: instance.id.to_string(), deadline: at });
        }
        self.complete(attempt, LifecycleResult::Continue, held, receipt).await?;
        Ok(ignored(&Reason::NoNode { cluster, provider_id: instance.provider_id() }))
    }
}
