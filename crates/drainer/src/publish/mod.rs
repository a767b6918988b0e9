//! Publishes the progress and the receipt of a drain to the log, the event bus and Kubernetes events.

mod blockage;
mod document;
mod events;
mod metrics;
mod node_events;

use jiff::Timestamp;
use kube::Client;
use spillway_core::drain::blockage::BlockageNews;
use spillway_core::drain::plan::PodName;
use spillway_core::invocation::Invocation;
use spillway_core::node::claimant::{Claim, ClaimResult};
use spillway_notice::continued::History;

use crate::context::Context;
use crate::receipt::Publication;
use blockage::BlockedPods;

/// Maximum size of a receipt in bytes. EventBridge accepts events of 256 KB.
const MOST_BYTES: usize = 240 * 1024;

/// Returns `true` in a notice's first invocation if the notice claimed the node or was denied the claim.
pub(crate) fn publishes_begin(claim: &Claim, history: &History) -> bool {
    match claim.how {
        ClaimResult::First | ClaimResult::CordonedByOthers | ClaimResult::Denied(_) => history.earlier.is_empty(),
        ClaimResult::Again | ClaimResult::Joined { .. } => false,
    }
}

/// Publishes the start of a drain on the event bus and as a Kubernetes event.
pub(crate) async fn publish_begin(
    begun: &Publication,
    leaving: &[PodName],
    context: &Context,
    client: &Client,
    invocation: &Invocation,
) {
    let on_the_bus = events::begin(context, begun, leaving, invocation);
    let pods = leaving.len();
    tokio::join!(on_the_bus, node_events::publish_begin(begun, pods, &context.settings, client, invocation));
}

/// Publishes news about blocked and unblocked pods on the event bus and as Kubernetes events.
pub(crate) async fn publish_blockage(
    so_far: &Publication,
    news: BlockageNews,
    context: &Context,
    client: &Client,
    invocation: &Invocation,
) {
    let blockage = BlockedPods::of(so_far, news, invocation.clock);
    let on_the_node = node_events::publish_blockage(&blockage, &context.settings, client, invocation);
    let now = invocation.clock.now();
    let detail = {
        let mut cut_to_fit = blockage.publication.clone();
        cut(&mut cut_to_fit, now);
        document::detail(&cut_to_fit, now)
    };
    tokio::join!(events::blockage(context, blockage.detail_type(), detail, invocation), on_the_node);
}

/// Logs the receipt and its metrics, then publishes the receipt on the event bus and, if `client` is given, as Kubernetes events.
pub(crate) async fn publish(
    publication: &mut Publication,
    context: &Context,
    client: Option<&Client>,
    invocation: &Invocation,
) {
    let settings = &context.settings;
    publication.receipt.stack.clone_from(&settings.stack);
    let now = invocation.clock.now();
    // Before the cut: metrics count all pods.
    let metrics = metrics::line(publication, now);
    cut(publication, now);
    let publication = &*publication;
    for line in document::lines(publication, now) {
        context.log.write(&line);
    }
    if let Some(metrics) = metrics {
        context.log.write(&metrics);
    }
    let on_the_bus = async {
        if events::is_end_published(settings, &publication.receipt) {
            events::end(context, document::detail(publication, now), invocation).await;
        }
    };
    let on_the_node = async {
        if let Some(client) = client {
            node_events::publish_end(publication, settings, client, invocation).await;
        }
    };
    tokio::join!(on_the_bus, on_the_node);
}

/// Shortens a receipt to [`MOST_BYTES`] by dropping the least important pods.
fn cut(publication: &mut Publication, now: Timestamp) {
    let too_long = document::detail(publication, now).len().saturating_sub(MOST_BYTES);
    publication.receipt.shorten(too_long);
}

#[cfg(test)]
mod tests;
