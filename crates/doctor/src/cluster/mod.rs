//! One cluster: may we sign in, may we do what a drain does, and what would hold a drain up?
//!
//! * `sign_in`: the way in, and who we are there
//! * `rights`: each right of deploy/rbac.yaml
//! * `nth`: whether aws-node-termination-handler runs there
//! * `cordon`: whether a node could be cordoned
//! * `nodes`: which nodes could not be drained in two minutes, and because of what

mod cordon;
mod enroll;
mod nodes;
mod nth;
mod rights;
mod sign_in;

use spillway_core::cluster::ClusterName;
use spillway_core::invocation::Invocation;
use spillway_drainer::Context;
use spillway_startup::logs::chain;
use tokio::time::Instant;

use crate::asked_until;
use crate::catalogue::CheckId;
use crate::report::Check;

#[derive(Debug, Default)]
pub(super) struct Looked {
    pub(super) checks: Vec<Check>,
    /// How many of its nodes are Spillway's to drain, as far as is known.
    pub(super) nodes: usize,
}

/// All checks of the cluster, until `end`. Who may not sign in sees nothing of the rest.
pub(super) async fn look(context: &Context, cluster: &ClusterName, invocation: &Invocation, end: Instant) -> Looked {
    // What EKS says now, not what it said when the function was warm: its certificate authority may be another.
    context.access.clusters.forget(cluster);
    let looked = match context.access.connect(cluster, asked_until(end)).await {
        Ok(connection) => {
            let client = &connection.client;
            let enroll = enroll::command(cluster, &context.settings.stack, invocation);
            let (user, signed_in) = sign_in::look(client, cluster, invocation, &enroll, end).await;
            match user {
                Some(user) => {
                    remember(context, cluster).await;
                    let (evictions, rights) =
                        rights::look(client, &context.settings, &user, invocation, cluster, &enroll, end).await;
                    let (nth, mut nodes) = tokio::join!(
                        nth::look(client, end),
                        nodes::look(client, context, cluster, evictions, invocation, end),
                    );
                    nodes.checks.splice(0..0, [signed_in, rights, nth]);
                    nodes
                }
                None => none_seen(signed_in),
            }
        }
        Err(failure) => none_seen(sign_in::unknown_cluster(&failure, cluster, invocation)),
    };
    Looked { checks: looked.checks.into_iter().map(|check| check.of(cluster)).collect(), ..looked }
}

/// Writes down where the cluster is, for a drain that EKS does not answer.
async fn remember(context: &Context, cluster: &ClusterName) {
    if let Err(error) = context.access.clusters.remember(cluster).await {
        tracing::warn!(
            cluster.name = %cluster,
            error = chain(&error),
            "cannot write down where cluster {cluster} is: when EKS throttles a storm of notices, its drains begin later"
        );
    }
}

fn none_seen(not_signed_in: Check) -> Looked {
    let why = "nothing inside the cluster was looked at, because Spillway cannot sign in";
    Looked { checks: vec![not_signed_in, Check::skipped(CheckId::InCluster, why)], nodes: 0 }
}
