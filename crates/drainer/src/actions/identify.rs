//! Identifies the instance of a notice: by EC2, or by the instance's node if EC2 does not answer in time.
//!
//! `DescribeInstances` may fail while an Availability Zone is down or many notices arrive. The known clusters are then searched
//! for the node. The node is safe to claim, because the claim tests its provider id.

use std::pin::pin;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::{Either, select};
use futures_util::stream::FuturesUnordered;
use jiff::Timestamp;
use spillway_core::cluster::ClusterName;
use spillway_core::decision;
use spillway_core::instance::Instance;
use spillway_notice::{Kind, Notice};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use crate::aws::{CallError, ec2};
use crate::context::Context;
use crate::failure::Failure;
use crate::node;

/// Time after which the clusters are searched for the node if EC2 has not answered. EC2 usually answers within 0.1 s.
const EC2_ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// Maximum wait for EC2's answer about an instance that has started. Afterwards, a later invocation asks EC2 again.
const RUNNING_DESCRIBED_WITHIN: Duration = Duration::from_secs(30);

/// Instance of a notice. The variant names the source that identified the instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Identified {
    /// EC2 describes the instance.
    ByEc2(Instance),
    /// EC2 did not answer in time, but this cluster has the instance's node.
    ByNode(Instance, ClusterName),
}

/// Identifies the instance of a notice, with retries until `end`. Returns `None` if EC2 has no such instance.
pub(crate) async fn identify(
    context: &Context,
    notice: &Notice,
    (now, end): (Timestamp, Instant),
) -> Result<Option<Identified>, Failure> {
    let settings = &context.settings;
    let end = match notice.kind {
        Kind::Running => end.min(Instant::now() + RUNNING_DESCRIBED_WITHIN),
        _ => end,
    };
    let is_behind = |described: Option<&_>| decision::is_behind(notice.kind, described, settings);
    let throttled = Notify::new();
    let described = async {
        let described = ec2::describe(&context.ec2, &notice.instance, end, &throttled, is_behind).await?;
        Ok(described.map(Identified::ByEc2))
    };
    if notice.kind == Kind::Running {
        // During a storm each retry would take a call from a more urgent notice.
        return match select(pin!(described), pin!(throttled.notified())).await {
            Either::Left((described, _)) => described,
            Either::Right(_) => Err(CallError::answered(
                ec2::DESCRIBE,
                "RequestLimitExceeded",
                "not retried for a running instance",
                None,
            )
            .into()),
        };
    }
    if !decision::may_be_identified_by_node(notice, settings, now) {
        return described.await;
    }
    let searched = async {
        sleep(EC2_ANSWERS_WITHIN).await;
        search(context, notice, end).await
    };
    match select(pin!(described), pin!(searched)).await {
        Either::Left((described, _)) => described,
        Either::Right((Some(found), _)) => Ok(Some(found)),
        Either::Right((None, described)) => described.await,
    }
}

/// Searches all known clusters for the instance's node.
async fn search(context: &Context, notice: &Notice, end: Instant) -> Option<Identified> {
    let id = &notice.instance;
    let clusters = context.known_clusters().await;
    tracing::warn!(
        clusters = clusters.len(),
        "EC2 does not describe instance {id}; searching the known clusters for its node"
    );
    let in_one = async |cluster: ClusterName| {
        let doing = format!("search for the node of instance {id}");
        let found = context.in_cluster(&cluster, end, &doing, async |client| {
            node::search(&client, id, &context.access.region, notice.zone.as_deref()).await
        });
        match found.await {
            Ok(found) => found.map(|instance| Identified::ByNode(instance, cluster)),
            Err(failure) => {
                tracing::warn!(error = failure.text(), "cannot search cluster {cluster} for the node of instance {id}");
                None
            }
        }
    };
    let mut searches: FuturesUnordered<_> = clusters.into_iter().map(in_one).collect();
    while let Some(found) = searches.next().await {
        if found.is_some() {
            return found;
        }
    }
    None
}
