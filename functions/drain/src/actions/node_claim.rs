//! Handing a node to Karpenter: connect, and delete its `NodeClaim`. Nothing here waits for its pods to leave.

use std::pin::pin;

use spillway_eks::ClusterName;
use tokio::time::Instant;

use super::cannot;
use crate::aws::instance::Instance;
use crate::context::target::{Attempt, LEAST_WINDOW};
use crate::failure::Failure;
use crate::handler::Spillway;
use crate::kube::{ApiError, until};
use crate::node::Unclaimed;
use crate::node::node_claim::{self, HandedOver};
use crate::notice::Deadline;
use crate::receipt::ending::{Outcome, handed_over};
use crate::receipt::{Receipt, StepName};

impl Spillway {
    /// Has Karpenter take the instance's node away until the notice's deadline.
    pub(crate) async fn node_claim(
        &self,
        attempt: &Attempt<'_>,
        instance: &Instance,
        cluster: ClusterName,
        receipt: &mut Receipt,
    ) -> Outcome {
        let end = attempt.window(&self.settings).end;
        let tell = |error: &ApiError| {
            tracing::warn!(cluster.name = %cluster, error = %error, "cannot hand the node to Karpenter; trying again");
        };
        let handed = until(end, async || self.try_hand_over(attempt, instance, &cluster, end).await, tell);
        let handed = handed.await.map_err(|error| {
            cannot(format!("hand the node of instance {} to Karpenter", instance.id), &cluster, error)
        })??;

        match handed {
            Ok(handed) => {
                if let HandedOver::ToKarpenter { .. } = handed {
                    receipt.step(StepName::NodeClaimDeleted, attempt.invocation.clock.now());
                }
                let (node, ended) = handed_over(handed);
                receipt.node = Some(node);
                Ok(ended)
            }
            Err(why) => {
                let held = pin!(attempt.hold(&self.settings));
                self.unclaimed(why, attempt, instance, cluster, held, receipt).await
            }
        }
    }

    /// The outer error is the API server's, the one in it is of what leads to it.
    async fn try_hand_over(
        &self,
        attempt: &Attempt<'_>,
        instance: &Instance,
        cluster: &ClusterName,
        end: Instant,
    ) -> Result<Result<Result<HandedOver, Unclaimed>, Failure>, ApiError> {
        let deadline = match attempt.notice.deadline {
            // From one that is past Karpenter would reckon a second for each pod.
            Deadline::Hard(at) => Some(at.max(attempt.invocation.clock.now() + LEAST_WINDOW)),
            Deadline::HeldByHook | Deadline::Open => None,
        };
        let connection = match self.access.connect(cluster, end).await {
            Ok(connection) => connection,
            Err(failure) => return Ok(Err(failure)),
        };
        node_claim::hand_over(&connection.client, instance, &self.settings.node_selector, deadline).await.map(Ok)
    }
}
