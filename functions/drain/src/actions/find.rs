//! Finding an instance's node without touching it: connect, look.

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use spillway_eks::ClusterName;
use tokio::time::Instant;

use super::cannot;
use crate::aws::instance::Instance;
use crate::failure::Failure;
use crate::handler::Spillway;
use crate::kube::{ApiError, until};
use crate::node::find;

impl Spillway {
    /// Connects and looks. Tried until `end`. `None`: the cluster has no such node.
    pub(super) async fn find(
        &self,
        cluster: &ClusterName,
        instance: &Instance,
        end: Instant,
    ) -> Result<Option<(kube::Client, Node)>, Failure> {
        let tell = |error: &ApiError| {
            tracing::warn!(cluster.name = %cluster, error = %error, "cannot find the node; trying again");
        };
        let found = until(end, async || self.try_find(cluster, instance, end).await, tell);
        found.await.map_err(|error| cannot(format!("find the node of instance {}", instance.id), cluster, error))?
    }

    /// The outer error is the API server's, the inner one is of what leads to it.
    async fn try_find(
        &self,
        cluster: &ClusterName,
        instance: &Instance,
        end: Instant,
    ) -> Result<Result<Option<(kube::Client, Node)>, Failure>, ApiError> {
        let client = match self.access.connect(cluster, end).await {
            Ok(connection) => connection.client,
            Err(failure) => return Ok(Err(failure)),
        };
        let node = find(&Api::all(client.clone()), instance).await?;
        Ok(Ok(node.map(|node| (client, node))))
    }
}
