//! Claiming a node: connect, find it, cordon it.

use std::pin::Pin;

use kube::Api;
use spillway_eks::{ClusterName, Connection};
use tokio::time::Instant;

use super::cannot;
use crate::aws::instance::{Instance, ManagedBy};
use crate::context::target::Attempt;
use crate::decision::Reason;
use crate::failure::Failure;
use crate::handler::Spillway;
use crate::kube::{ApiError, until};
use crate::node::{self, Claim, Claimant, Unclaimed};
use crate::receipt::Receipt;
use crate::receipt::ending::{Outcome, ignored};

/// A claimed node and the way to it, or why there is none.
pub(super) type Claiming = Result<(Connection, Claim), Unclaimed>;

impl Spillway {
    /// Claims while the hook is held. `None`: it waited no longer.
    pub(super) async fn claim_in_time(
        &self,
        attempt: &Attempt<'_>,
        instance: &Instance,
        owner: ManagedBy,
        cluster: &ClusterName,
        held: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<Option<Claiming>, Failure> {
        tokio::select! {
            claimed = self.claim(attempt, instance, owner, cluster) => claimed.map(Some),
            () = held => Ok(None),
        }
    }

    /// Connects and claims. Tried until the window ends.
    async fn claim(
        &self,
        attempt: &Attempt<'_>,
        instance: &Instance,
        owner: ManagedBy,
        cluster: &ClusterName,
    ) -> Result<Claiming, Failure> {
        let (claimant, end) = (attempt.claimant(owner, &self.settings), attempt.window(&self.settings).end);
        let tell = |error: &ApiError| {
            tracing::warn!(cluster.name = %cluster, error = %error, "cannot cordon the node; trying again");
        };
        let claimed = until(end, async || self.try_claim(cluster, instance, &claimant, end).await, tell);
        let claiming = claimed
            .await
            .map_err(|error| cannot(format!("cordon the node of instance {}", instance.id), cluster, error))??;
        if let Ok((connection, _)) = &claiming {
            attempt.invocation.connection.get_or_init(|| connection.clone());
        }
        Ok(claiming)
    }

    /// The outer error is the API server's, the inner one is of what leads to it.
    async fn try_claim(
        &self,
        cluster: &ClusterName,
        instance: &Instance,
        claimant: &Claimant<'_>,
        end: Instant,
    ) -> Result<Result<Claiming, Failure>, ApiError> {
        let connection = match self.access.connect(cluster, end).await {
            Ok(connection) => connection,
            Err(failure) => return Ok(Err(failure)),
        };
        let claimed = node::claim(&Api::all(connection.client.clone()), instance, claimant).await?;
        Ok(Ok(claimed.map(|claim| (connection, claim))))
    }

    /// What becomes of a notice whose node is not claimed.
    pub(super) async fn unclaimed(
        &self,
        why: Unclaimed,
        attempt: &Attempt<'_>,
        instance: &Instance,
        cluster: ClusterName,
        held: Pin<&mut impl Future<Output = ()>>,
        receipt: &mut Receipt,
    ) -> Outcome {
        match why {
            Unclaimed::NoNode => self.no_node(attempt, instance, cluster, held, receipt).await,
            Unclaimed::OptedOut(node) => Ok(ignored(&Reason::OptedOut(node))),
            Unclaimed::GivenBack(node) => Ok(ignored(&Reason::GivenBack(node))),
            Unclaimed::NotSelected(node) => Ok(ignored(&Reason::NotSelected(node))),
            // Once only: an owner that a label names is not looked for again.
            Unclaimed::OfAnother(owner) => Box::pin(self.decide(attempt, instance, owner, cluster, receipt)).await,
        }
    }
}
