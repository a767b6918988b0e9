//! Declaring a node out of service whose instance is down, so that its pods and volumes are free at once.

use std::pin::pin;
use std::time::Duration;

use kube::Api;
use spillway_eks::ClusterName;
use tokio::time::sleep;

use super::cannot;
use crate::aws::instance::{Instance, InstanceState, ManagedBy};
use crate::context::target::Attempt;
use crate::decision::Reason;
use crate::handler::Spillway;
use crate::kube::{ApiError, until};
use crate::node::out_of_service::{Declared, declare};
use crate::receipt::Receipt;
use crate::receipt::ending::{self, Outcome, ignored};

/// How soon it is seen that the control plane misses the kubelet. To watch nodes would be a right more.
const LOOK_EVERY: Duration = Duration::from_secs(5);

impl Spillway {
    /// Taints the node if its instance is down and it is not Ready. That it is still taken for Ready may mean that
    /// the control plane has not missed its kubelet yet, so it is looked again until the window ends.
    pub(crate) async fn out_of_service(
        &self,
        attempt: &Attempt<'_>,
        instance: &Instance,
        owner: ManagedBy,
        cluster: ClusterName,
        receipt: &mut Receipt,
    ) -> Outcome {
        if instance.state != InstanceState::Down {
            return Ok(ignored(&Reason::NotDown(instance.id.to_string())));
        }
        let end = attempt.window(&self.settings).end;
        let tell = |error: &ApiError| {
            tracing::warn!(cluster.name = %cluster, error = %error, "cannot declare the node out of service; trying again");
        };
        let claimant = attempt.claimant(owner, &self.settings);
        let mut ready = None;
        let declared = until(
            end,
            async || {
                let connection = match self.access.connect(&cluster, end).await {
                    Ok(connection) => connection,
                    Err(failure) => return Ok(Err(failure)),
                };
                let nodes = Api::all(connection.client);
                loop {
                    match declare(&nodes, instance, &claimant).await? {
                        Ok(Declared::OutOfService(node)) => return Ok(Ok(Ok(node))),
                        Ok(Declared::Ready(node)) => ready = Some(node),
                        Err(why) => return Ok(Ok(Err(why))),
                    }
                    sleep(LOOK_EVERY).await;
                }
            },
            tell,
        );
        match (declared.await, ready) {
            (Ok(declared), _) => match declared? {
                Ok(node) => {
                    receipt.node = Some(node.clone());
                    Ok(ending::out_of_service(&node))
                }
                Err(why) => {
                    let held = pin!(attempt.hold(&self.settings));
                    self.unclaimed(why, attempt, instance, cluster, held, receipt).await
                }
            },
            (Err(ApiError::TimeUp), Some(node)) => {
                receipt.node = Some(node.clone());
                Ok(ignored(&Reason::StillReady(node)))
            }
            (Err(error), _) => {
                Err(cannot(format!("declare the node of instance {} out of service", instance.id), &cluster, error))
            }
        }
    }
}
