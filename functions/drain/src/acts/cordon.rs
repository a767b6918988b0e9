//! Cordoning a node and no more.

use spillway_eks::ClusterName;

use crate::attempt::Attempt;
use crate::drain::beside::Claimed;
use crate::ending::{self, Outcome};
use crate::handler::Spillway;
use crate::instance::{Instance, Owner};
use crate::receipt::{Receipt, StepName};
use crate::settings::LifecycleResult;

impl Spillway {
    /// Cordons the instance's node and leaves its pods; a hook that waits is completed at once.
    pub(crate) async fn cordon(
        &self,
        attempt: &Attempt<'_>,
        instance: &Instance,
        owner: Owner,
        cluster: ClusterName,
        receipt: &mut Receipt,
    ) -> Outcome {
        let claimed = self.claim(attempt, instance, owner, &cluster).await?;
        let held = std::pin::pin!(attempt.hold(&self.settings));
        let claim = match claimed {
            Ok((_, Claimed { claim, .. })) => claim,
            Err(why) => return self.unclaimed(why, attempt, instance, cluster, held, receipt).await,
        };
        receipt.node = Some(claim.node.clone());
        receipt.step(StepName::Claimed, attempt.invocation.clock.now());
        let arranged = self.arrange(attempt, &claim).await;
        self.complete(attempt, LifecycleResult::Continue, held, receipt).await?;
        arranged.map(|()| ending::cordoned(&claim.node))
    }
}
