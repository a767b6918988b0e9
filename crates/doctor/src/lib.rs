//! The self-test, whose public name is the doctor: would the next notice be handled? Looks at all
//! that a drain needs, and touches nothing.
//!
//! * `request`: the events that ask for it (pure)
//! * `report`: what it says: checks and their findings (pure)
//! * `catalogue`: the ids of every check and finding, as docs/doctor.md has them (pure)
//! * `log`, `metrics`: views of the report
//! * `account`: what is looked at in AWS
//! * `clusters`: which clusters are looked at
//! * `cluster`: what is looked at in each
//! * `concurrency`: whether Lambda may run as many drains at once as there are nodes
//!
//! This file ties them together: each check is a file that says what it looks at.

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
use spillway_eks::OtherNames;
use spillway_startup::logs::chain;
use tokio::time::Instant;
use tracing::Instrument as _;

use report::Check;

pub use report::SelfTestReport;
pub use request::{SelfTestRequest, request};

/// Most of a check is waiting, and one cluster that does not answer is not to keep the others; each may have a page of
/// its nodes or pods in memory.
const CLUSTERS_AT_ONCE: usize = 4;

/// How long to retry what does not answer. A drain retries until its window ends, but somebody waits for the report.
const ASKED_FOR: Duration = Duration::from_secs(10);

/// Until when one thing is asked, within the time of the whole self-test.
fn asked_until(end: Instant) -> Instant {
    end.min(Instant::now() + ASKED_FOR)
}

/// Looks at everything, tells the log, and answers the report. A check that cannot be made is no failure of
/// the self-test: the report says so.
pub async fn examine(context: &Context, request: &SelfTestRequest, invocation: &Invocation) -> SelfTestReport {
    let span = tracing::error_span!("self-test", request.id = invocation.request_id);
    look(context, request, invocation).instrument(span).await
}

async fn look(context: &Context, request: &SelfTestRequest, invocation: &Invocation) -> SelfTestReport {
    let end = invocation.drains_until();
    let checks = match context.settings.wrong {
        // With other settings than the stack's, no other check says anything.
        Some(_) => vec![account::variables::look(&context.settings)],
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

/// Writes down which clusters there are, for a notice whose instance EC2 does not describe.
async fn remember_names(context: &Context, request: &SelfTestRequest, clusters: &[ClusterName]) {
    let others = if request.cluster.is_some() { OtherNames::Keep } else { OtherNames::Drop };
    if let Err(error) = context.access.clusters.remember_names(clusters, others).await {
        tracing::warn!(
            error = chain(&error),
            "cannot write down which clusters there are: while EC2 is silent, only known clusters are searched"
        );
    }
}

async fn checks(context: &Context, request: &SelfTestRequest, invocation: &Invocation, end: Instant) -> Vec<Check> {
    let (clusters, checked) = clusters::look(context, request, &invocation.home.region, end).await;
    let of_account = account::checks(context, &clusters, invocation, end);
    let of_clusters = stream::iter(&clusters)
        .map(|cluster| cluster::look(context, cluster, invocation, end))
        .buffered(CLUSTERS_AT_ONCE)
        .collect::<Vec<_>>();
    let limit = concurrency::limit(&context.itself, end);
    let (of_account, of_clusters, limit) = tokio::join!(of_account, of_clusters, limit);
    remember_names(context, request, &clusters).await;
    let concurrency = concurrency::look(&limit, of_clusters.iter().map(|cluster| cluster.nodes).sum());
    let of_clusters = of_clusters.into_iter().flat_map(|cluster| cluster.checks);
    [checked].into_iter().chain(of_account).chain([concurrency]).chain(of_clusters).collect()
}
