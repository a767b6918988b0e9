//! Declaring a node out of service whose instance is down, so that its pods and volumes are free at once.

use kube::Api;
use spillway_core::decision::Reason;
use spillway_core::instance::InstanceState;
use spillway_core::outcome::Outcome;

use super::claim::unclaimed;
use crate::context::{Context, Target};
use crate::failure::Failure;
use crate::kube::ApiError;
use crate::node::out_of_service::{Declared, declare};
use crate::node::{NodeError, NodeWatch};
use crate::receipt::record::Record;

/// Taints the node if its instance is down and it is not Ready. That it is still taken for Ready may mean that the control
/// plane has not missed its kubelet yet, so its changes are waited for until the window ends.
pub(crate) async fn out_of_service(
    context: &Context,
    target: &Target<'_>,
    record: &mut Record,
) -> Result<Outcome, Failure> {
    let Target { attempt, instance, cluster, .. } = target;
    if instance.state != InstanceState::Down {
        return Ok(Outcome::Ignored(Reason::NotDown(instance.id.to_string())));
    }
    let claimant = target.claimant(&context.settings);
    let mut ready = None;
    let doing = format!("declare the node of instance {} out of service", instance.id);
    let declared = context.in_cluster(cluster, attempt.window().end, &doing, async |client| {
        let nodes = Api::all(client);
        let mut watch = None;
        loop {
            match declare(&nodes, instance, &claimant).await {
                Ok(Declared::Ready(node)) => {
                    ready = Some(node.clone());
                    watch.get_or_insert_with(|| NodeWatch::of(nodes.clone(), &node)).next().await;
                }
                Ok(Declared::OutOfService(node)) => return Ok(Ok(node)),
                Err(error) => return NodeError::settled(Err(error)),
            }
        }
    });
    match (declared.await, ready) {
        (Ok(Ok(node)), _) => {
            record.found(&node);
            Ok(Outcome::OutOfService { node })
        }
        (Ok(Err(why)), _) => unclaimed(why, target, record).await,
        (Err(Failure::Kubernetes { error: ApiError::TimeUp, .. }), Some(node)) => {
            record.found(&node);
            Ok(Outcome::Ignored(Reason::StillReady(node)))
        }
        (Err(failure), _) => Err(failure),
    }
}
