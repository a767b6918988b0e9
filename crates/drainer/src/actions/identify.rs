//! Who the instance of a notice is: EC2 says it, or, where EC2 does not describe the instance in time, its node.
//!
//! `DescribeInstances` fails for the instances of an Availability Zone that is down (its API reference says so), and a storm of
//! notices empties its bucket of requests. A notice with a deadline cannot wait for that. The claim tests the provider id,
//! so a node that is found in another way is safe to claim.

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

/// How long EC2 may not describe the instance until its node is searched: its usual answer takes a tenth of a second, and a spot
/// notice leaves two minutes. A throttled call is repeated until then: a search costs more than a second call.
const EC2_ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// How long EC2 is asked about an instance that runs: nobody waits for the answer, and an undo check asks again.
const RUNNING_ASKED_FOR: Duration = Duration::from_secs(30);

/// An instance, and who told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Identified {
    /// EC2 describes it.
    ByEc2(Instance),
    /// EC2 did not describe it in time. Its node was found in this cluster.
    ByNode(Instance, ClusterName),
}

/// Finds out who the instance of a notice is, from now until `end`. `None`: EC2 knows no such instance.
pub(crate) async fn identify(
    context: &Context,
    notice: &Notice,
    (now, end): (Timestamp, Instant),
) -> Result<Option<Identified>, Failure> {
    let settings = &context.settings;
    let end = match notice.kind {
        Kind::Running => end.min(Instant::now() + RUNNING_ASKED_FOR),
        _ => end,
    };
    let is_behind = |described: Option<&_>| decision::is_behind(notice.kind, described, settings);
    let throttled = Notify::new();
    let described = async {
        let described = ec2::describe(&context.ec2, &notice.instance, end, &throttled, is_behind).await?;
        Ok(described.map(Identified::ByEc2))
    };
    if notice.kind == Kind::Running {
        // In a storm each attempt takes a call from a notice whose time is short.
        return match select(pin!(described), pin!(throttled.notified())).await {
            Either::Left((described, _)) => described,
            Either::Right(_) => {
                Err(CallError::answered(ec2::DESCRIBE, "RequestLimitExceeded", "not asked again", None).into())
            }
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

/// Searches the node in every cluster that is known: by the setting, or because this process has connected to it.
async fn search(context: &Context, notice: &Notice, end: Instant) -> Option<Identified> {
    let id = &notice.instance;
    let clusters = context.known_clusters().await;
    tracing::warn!(
        clusters = clusters.len(),
        "EC2 does not describe instance {id}; searching its node in the known clusters"
    );
    let in_one = async |cluster: ClusterName| {
        let doing = format!("search the node of instance {id}");
        let found = context.in_cluster(&cluster, end, &doing, async |client| {
            node::search(&client, id, &context.access.region, notice.zone.as_deref()).await
        });
        match found.await {
            Ok(found) => found.map(|instance| Identified::ByNode(instance, cluster)),
            Err(failure) => {
                tracing::warn!(
                    error = failure.text(),
                    "the node of instance {id} was not searched in cluster {cluster}"
                );
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
