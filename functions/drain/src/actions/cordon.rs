//! Cordoning a node and no more.

use std::pin::pin;

use spillway_eks::ClusterName;

use crate::aws::instance::{Instance, ManagedBy};
use crate::context::target::Attempt;
use crate::decision::Reason;
use crate::handler::Spillway;
use crate::receipt::ending::{self, Outcome, ignored};
use crate::receipt::{Receipt, StepName};
use crate::settings::LifecycleResult;

impl Spillway {
    /// Cordons the instance's node and leaves its pods; a hook that waits is completed at once.
    pub(crate) async fn cordon(
        &self,
        attempt: &Attempt<'_>,
        instance: &Instance,
        owner: ManagedBy,
        cluster: ClusterName,
        receipt: &mut Receipt,
    ) -> Outcome {
        let mut held = pin!(attempt.hold(&self.settings));
        let claimed = self.claim_in_time(attempt, instance, owner, &cluster, held.as_mut()).await?;
        let claim = match claimed {
            Some(Ok((_, claim))) => claim,
            None => {
                receipt.hook_is_over();
                return Ok(ignored(&Reason::HookIsOver));
            }
            Some(Err(why)) => return self.unclaimed(why, attempt, instance, cluster, held, receipt).await,
        };
        receipt.claim(&claim);
        receipt.step(StepName::Claimed, attempt.invocation.clock.now());
        let arranged = self.arrange(attempt, &claim).await;
        self.complete(attempt, LifecycleResult::Continue, held, receipt).await?;
        arranged.map(|()| ending::cordoned(&claim.node))
    }
}
