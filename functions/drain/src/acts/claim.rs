//! Claiming a node: connect, find it, cordon it.

use spillway_eks::ClusterName;

use super::cannot;
use crate::drain::beside::{self, Claimed};
use crate::drain::deadline::Window;
use crate::failure::Failure;
use crate::handler::Spillway;
use crate::instance::Instance;
use crate::kubernetes::{self, ApiError};
use crate::node::Claimant;

impl Spillway {
    /// Connects and claims. Tried until the window ends.
    pub(super) async fn claim(
        &self,
        cluster: &ClusterName,
        instance: &Instance,
        claimant: &Claimant,
        window: Window,
    ) -> Result<Option<(kube::Client, Claimed)>, Failure> {
        let tell = |error: &ApiError| {
            tracing::warn!(cluster.name = %cluster, error = %error, "cannot cordon the node; trying again");
        };
        let claimed =
            kubernetes::until(window.end, async || self.try_claim(cluster, instance, claimant, window).await, tell);
        claimed.await.map_err(|error| cannot(format!("cordon the node of instance {}", instance.id), cluster, error))?
    }

    /// The outer error is the API server's, the inner one is of what leads to it.
    async fn try_claim(
        &self,
        cluster: &ClusterName,
        instance: &Instance,
        claimant: &Claimant,
        window: Window,
    ) -> Result<Result<Option<(kube::Client, Claimed)>, Failure>, ApiError> {
        let connection = match self.access.connect(cluster, window.end).await {
            Ok(connection) => connection,
            Err(failure) => return Ok(Err(failure)),
        };
        let claimed = beside::claim_and_list(&connection, instance, claimant).await?;
        Ok(Ok(claimed.map(|claimed| (connection.client, claimed))))
    }
}
