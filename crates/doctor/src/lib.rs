//! Self-test (doctor): checks whether the next notice would be handled. Changes nothing in the clusters.

mod account;
mod catalogue;
mod cluster;
mod clusters;
mod concurrency;
mod log;
mod metrics;
mod report;
mod request;

use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use spillway_core::cluster::ClusterName;
use spillway_core::invocation::Invocation;
use spillway_drainer::Context;
use spillway_eks::UnlistedNames;
use spillway_startup::logs::chain;
use tokio::time::Instant;
use tracing::Instrument as _;

use report::Check;

pub use report::SelfTestReport;
pub use request::{SelfTestRequest, request};

/// Maximum number of clusters to check at the same time, which limits the memory use.
const CLUSTERS_AT_ONCE: usize = 4;

/// Time after which a failing request is no longer retried. Short, because a user waits for the report.
const RETRY_PERIOD: Duration = Duration::from_secs(10);

fn retry_end(end: Instant) -> Instant {
    end.min(Instant::now() + RETRY_PERIOD)
}

/// Runs all checks, logs the report and returns the report.
pub async fn examine(context: &Context, request: &SelfTestRequest, invocation: &Invocation) -> SelfTestReport {
    let span = tracing::error_span!("self-test", request.id = invocation.request_id);
    run_check(context, request, invocation).instrument(span).await
}

async fn run_check(context: &Context, request: &SelfTestRequest, invocation: &Invocation) -> SelfTestReport {
    let end = invocation.drains_until();
    let checks = match context.settings.wrong {
        // The other checks need valid settings.
        Some(_) => vec![account::variables::run_check(&context.settings)],
        None => checks(context, request, invocation, end).await,
    };
    let report = SelfTestReport::new(&invocation.request_id, invocation.clock, checks);
    let now = invocation.clock.now();
    for line in log::lines(&report, now) {
        context.log.write(&line);
    }
    if let Some(line) = metrics::line(&report, request, &context.settings.stack, now) {
        context.log.write(&line);
    }
    report
}

/// Saves the cluster names in Parameter Store, for drains that must search all clusters for a node.
async fn store_names(context: &Context, request: &SelfTestRequest, clusters: &[ClusterName]) {
    let others = if request.cluster.is_some() { UnlistedNames::Keep } else { UnlistedNames::Drop };
    if let Err(error) = context.access.clusters.store_names(clusters, others).await {
        tracing::warn!(
            error = chain(&error),
            "cannot cache the names of the clusters in Parameter Store; while EC2 does not answer, only known clusters are searched"
        );
    }
}

async fn checks(context: &Context, request: &SelfTestRequest, invocation: &Invocation, end: Instant) -> Vec<Check> {
    let (clusters, of_names) = clusters::run_check(context, request, &invocation.home.region, end).await;
    let of_account = account::checks(context, &clusters, invocation, end);
    let of_clusters = stream::iter(&clusters)
        .map(|cluster| cluster::run_check(context, cluster, invocation, end))
        .buffered(CLUSTERS_AT_ONCE)
        .collect::<Vec<_>>();
    let limit = concurrency::limit(&context.itself, end);
    let (of_account, of_clusters, limit) = tokio::join!(of_account, of_clusters, limit);
    store_names(context, request, &clusters).await;
    let concurrency = concurrency::run_check(&limit, of_clusters.iter().map(|cluster| cluster.nodes).sum());
    let of_clusters = of_clusters.into_iter().flat_map(|cluster| cluster.checks);
    [of_names].into_iter().chain(of_account).chain([concurrency]).chain(of_clusters).collect()
}
