//! The claim, and beside it the list of the node's pods: one round trip less to the first
//! eviction.
//!
//! The list is of the node that the instance most likely is; it counts only if the claim says that
//! it was. What the cordon still lets through is seen by the watch, which goes on from the list.

use std::pin::pin;
use std::time::Duration;

use futures_util::future::{Either, select};
use kube::Api;
use spillway_eks::Connection;
use tokio::time::sleep;

use super::pods_of;
use crate::aws::instance::Instance;
use crate::kube::ApiError;
use crate::kube::pod::Pod;
use crate::kube::watch::Listed;
use crate::node::{self, Claim, Claimant, Unclaimed};

/// How far the list stays behind the claim. The API server starts every request on a thread of
/// its own, the latest first: without a pause it often begins with the list.
const BEHIND: Duration = Duration::from_millis(2);

/// A node that may be drained, with its pods if the list came with the claim.
#[derive(Debug)]
pub(crate) struct Claimed {
    pub(crate) claim: Claim,
    pub(crate) pods: Option<Listed<Pod>>,
}

/// Claims the instance's node and lists its pods. The outer error is the API server's. A list that
/// fails is left to the drain, which has the time to try again.
pub(crate) async fn claim_and_list(
    connection: &Connection,
    instance: &Instance,
    claimant: &Claimant<'_>,
) -> Result<Result<Claimed, Unclaimed>, ApiError> {
    let likely = node::likely_name(instance);
    let nodes = Api::all(connection.client.clone());
    let claim = pin!(node::claim(&nodes, instance, claimant));
    let pods = pin!(list_behind(connection.clone(), &likely));
    match select(claim, pods).await {
        Either::Left((Ok(Ok(claim)), pods)) if claim.node == likely => Ok(Ok(Claimed { claim, pods: pods.await.ok() })),
        Either::Left((claim, _)) => Ok(claim?.map(|claim| Claimed { claim, pods: None })),
        Either::Right((pods, claim)) => Ok(claim.await?.map(|claim| {
            let pods = pods.ok().filter(|_| claim.node == likely);
            Claimed { claim, pods }
        })),
    }
}

async fn list_behind(mut connection: Connection, node: &str) -> Result<Listed<Pod>, ApiError> {
    connection.first_request.connected().await;
    sleep(BEHIND).await;
    pods_of(&connection.client, node).list().await
}
