//! Runs the self-test's checks of one cluster.

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

use crate::catalogue::CheckId;
use crate::report::Check;
use crate::retry_end;

#[derive(Debug, Default)]
pub(super) struct ClusterChecks {
    pub(super) checks: Vec<Check>,
    /// Number of nodes that Spillway drains; 0 if the nodes cannot be listed.
    pub(super) nodes: usize,
}

/// Runs all checks of the cluster. If the sign-in fails, the other checks are skipped.
pub(super) async fn run_check(
    context: &Context,
    cluster: &ClusterName,
    invocation: &Invocation,
    end: Instant,
) -> ClusterChecks {
    // The cached certificate authority may be out of date.
    context.access.clusters.forget(cluster);
    let made = match context.access.connect(cluster, retry_end(end)).await {
        Ok(connection) => {
            let client = &connection.client;
            let enroll = enroll::command(cluster, &context.settings.stack, invocation);
            let (user, signed_in) = sign_in::run_check(client, cluster, invocation, &enroll, end).await;
            match user {
                Some(user) => {
                    store(context, cluster).await;
                    let (evictions, rights) =
                        rights::run_check(client, &context.settings, &user, invocation, cluster, &enroll, end).await;
                    let (nth, mut nodes) = tokio::join!(
                        nth::run_check(client, end),
                        nodes::run_check(client, context, cluster, evictions, invocation, end),
                    );
                    nodes.checks.splice(0..0, [signed_in, rights, nth]);
                    nodes
                }
                None => only_sign_in(signed_in),
            }
        }
        Err(failure) => only_sign_in(sign_in::unknown_cluster(&failure, cluster, invocation)),
    };
    ClusterChecks { checks: made.checks.into_iter().map(|check| check.of(cluster)).collect(), ..made }
}

/// Saves the cluster's endpoint in Parameter Store. Drains use the endpoint while EKS does not respond.
async fn store(context: &Context, cluster: &ClusterName) {
    if let Err(error) = context.access.clusters.store(cluster).await {
        tracing::warn!(
            cluster.name = %cluster,
            error = chain(&error),
            "cannot cache the endpoint of cluster {cluster} in Parameter Store; while EKS throttles, its drains begin later"
        );
    }
}

fn only_sign_in(not_signed_in: Check) -> ClusterChecks {
    let why = "all checks inside the cluster need a sign-in";
    ClusterChecks { checks: vec![not_signed_in, Check::skipped(CheckId::InCluster, why)], nodes: 0 }
}
