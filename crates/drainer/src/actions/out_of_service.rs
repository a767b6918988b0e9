//! Taints a node as out of service if its instance is down, so that Kubernetes releases pods and volumes at once.

use std::cell::RefCell;

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use spillway_core::decision::Reason;
use spillway_core::instance::InstanceState;
use spillway_core::node::claimant::Claimant;
use spillway_core::node::unclaimed::Unclaimed;
use spillway_core::outcome::Outcome;
use tokio::sync::Notify;

use super::Next;
use super::claim::unclaimed;
use crate::aws::{CallError, ec2};
use crate::context::{Context, Target};
use crate::failure::Failure;
use crate::kube::{ApiError, Contention as _};
use crate::node::out_of_service::{declare, read_node};
use crate::node::{NodeError, NodeWatch};
use crate::receipt::record::Record;

/// Result of an attempt to taint the node.
enum Declared {
    /// The node has the taint `node.kubernetes.io/out-of-service`.
    OutOfService(String),
    /// EC2 no longer describes the instance as down, or the node has rebooted since its boot id was first read.
    UpAgain(String),
    /// The node does not exist, or must not be changed.
    Unclaimed(Unclaimed),
    /// EC2 did not answer whether the instance is down.
    NotDescribed(CallError),
}

#[derive(Debug, Default)]
struct Observed {
    boot: Option<String>,
    /// Name of the node, if at least one read found the node Ready.
    ready: Option<String>,
}

/// Taints the node as out of service if its instance is down and the node is not Ready. Watches a Ready node until the
/// attempt's time is up.
pub(crate) async fn out_of_service(
    context: &Context,
    target: &Target<'_>,
    record: &mut Record,
) -> Result<Next, Failure> {
    let Target { attempt, instance, cluster, .. } = target;
    if instance.state != InstanceState::Down {
        return Ok(Outcome::Ignored(Reason::NotDown(instance.id.clone())).into());
    }
    let claimant = target.claimant();
    let first = RefCell::new(None);
    let doing = format!("declare the node of instance {} out of service", instance.id);
    let declared = context.in_cluster(cluster, attempt.window.end, &doing, async |client| {
        declare_when_missed(context, target, &Api::all(client), &claimant, &first).await
    });
    let declared = declared.await;
    let ready = first.into_inner().and_then(|first: Observed| first.ready);
    match (declared, ready) {
        (Ok(Declared::OutOfService(node)), _) => {
            record.found(&node);
            Ok(Outcome::OutOfService { node }.into())
        }
        (Ok(Declared::UpAgain(node)), _) => {
            record.found(&node);
            Ok(Outcome::Ignored(Reason::RunsAgain(instance.id.clone())).into())
        }
        (Ok(Declared::Unclaimed(why)), _) => unclaimed(why, context, target, record).await,
        (Ok(Declared::NotDescribed(error)), _) => Err(error.into()),
        (Err(Failure::Kubernetes { error: ApiError::TimeUp, .. }), Some(node)) => {
            record.found(&node);
            Ok(Outcome::Ignored(Reason::StillReady(node)).into())
        }
        (Err(failure), _) => Err(failure),
    }
}

/// Waits until the node is not Ready, confirms in EC2 that the instance is down, and taints the node. Starts again if the node
/// changes before Spillway taints it.
async fn declare_when_missed(
    context: &Context,
    target: &Target<'_>,
    nodes: &Api<Node>,
    claimant: &Claimant<'_>,
    first: &RefCell<Option<Observed>>,
) -> Result<Declared, ApiError> {
    let Target { attempt, instance, .. } = target;
    let mut watch = None;
    loop {
        let observed = match read_node(nodes, instance, claimant).await {
            Ok(observed) => observed,
            Err(NodeError::Unclaimed(why)) => return Ok(Declared::Unclaimed(why)),
            Err(NodeError::Api(error)) => return Err(error),
        };
        {
            let mut first = first.borrow_mut();
            let first = first.get_or_insert_with(|| Observed { boot: observed.boot.clone(), ready: None });
            if first.boot != observed.boot {
                return Ok(Declared::UpAgain(observed.name));
            }
            if observed.is_ready {
                first.ready = Some(observed.name.clone());
            }
        }
        if observed.is_ready {
            watch.get_or_insert_with(|| NodeWatch::of(nodes.clone(), &observed.name)).next().await;
            continue;
        }
        match ec2::describe(&context.ec2, &instance.id, attempt.window.end, &Notify::new(), |_| false).await {
            Ok(Some(instance)) if instance.state == InstanceState::Down => {}
            Ok(_) => return Ok(Declared::UpAgain(observed.name)),
            Err(error) => return Ok(Declared::NotDescribed(error)),
        }
        match declare(nodes, &observed).await {
            Ok(()) => return Ok(Declared::OutOfService(observed.name)),
            Err(NodeError::Unclaimed(why)) => return Ok(Declared::Unclaimed(why)),
            Err(error) if error.is_contention() => {}
            Err(NodeError::Api(error)) => return Err(error),
        }
    }
}
