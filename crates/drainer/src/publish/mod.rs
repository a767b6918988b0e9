//! The receipt published: each file here is a view of it.
//!
//! * `blockage`: what there is to say of what blocks a drain
//! * `document`: a JSON document, for the log and for the event bus
//! * `metrics`: CloudWatch metrics, as a line of the log
//! * `events`: messages for the announcer, and our events on the event bus
//! * `node_events`: Kubernetes events on the node and its pods

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
use spillway_core::node::claimant::{Claim, How};
use spillway_notice::continued::History;

use crate::context::Context;
use crate::drain::side_task::SideTask;
use crate::receipt::{BeginNotified, Publication};
use blockage::Blockage;

/// How long a receipt may be. EventBridge takes 256 KB, with what it adds. The log would take more, in several lines, but both
/// have the same.
const MOST_BYTES: usize = 240 * 1024;

/// Whether it is this drain's to tell that it has begun: whoever claimed the node tells it, in the first of its
/// invocations.
pub(crate) fn tells_begin(claim: &Claim, history: &History) -> bool {
    match claim.how {
        How::First | How::CordonedByOthers | How::Denied(_) => history.earlier.is_empty(),
        How::Again | How::Joined { .. } => false,
    }
}

/// Whether that has been told by the time the drain is over, by this invocation or by one before it.
pub(crate) fn begin(claim: &Claim, history: &History, side_task: &SideTask<'_>) -> BeginNotified {
    let by_this_one = tells_begin(claim, history) && side_task.has_begun();
    let by_one_before = claim.how == How::Again || !history.earlier.is_empty();
    if by_this_one || by_one_before { BeginNotified::Told } else { BeginNotified::Untold }
}

/// Publishes that a drain is under way and which pods have to leave: on the event bus, and on the node.
pub(crate) async fn publish_begin(
    begun: &Publication,
    leaving: &[PodName],
    context: &Context,
    client: &Client,
    invocation: &Invocation,
) {
    let on_the_bus = events::tell_begin(context, begun, leaving, invocation);
    let pods = leaving.len();
    tokio::join!(on_the_bus, node_events::tell_begin(begun, pods, &context.settings, client, invocation));
}

/// Publishes that something blocks a drain, or no longer does: on the event bus, on the node and on the pods.
pub(crate) async fn publish_blockage(
    so_far: &Publication,
    news: BlockageNews,
    context: &Context,
    client: &Client,
    invocation: &Invocation,
) {
    let blockage = Blockage::of(so_far, news, invocation.clock);
    let on_the_node = node_events::tell_blockage(&blockage, &context.settings, client, invocation);
    let now = invocation.clock.now();
    let detail = {
        let mut cut_to_fit = blockage.publication.clone();
        cut(&mut cut_to_fit, now);
        document::detail(&cut_to_fit, now)
    };
    tokio::join!(events::tell_blockage(context, blockage.detail_type(), detail, invocation), on_the_node);
}

/// Writes the receipt and its metrics to the log; then, last of all, publishes it on the event bus, and by the way to the
/// cluster, if there is one, on the node and its pods.
pub(crate) async fn publish(
    publication: &mut Publication,
    context: &Context,
    client: Option<&Client>,
    invocation: &Invocation,
) {
    let settings = &context.settings;
    publication.receipt.stack.clone_from(&settings.stack);
    let now = invocation.clock.now();
    // Of every pod, whether or not the receipt can name it.
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
        if events::is_end_told(settings, &publication.receipt) {
            events::tell_end(context, document::detail(publication, now), invocation).await;
        }
    };
    let on_the_node = async {
        if let Some(client) = client {
            node_events::tell_end(publication, settings, client, invocation).await;
        }
    };
    tokio::join!(on_the_bus, on_the_node);
}

/// Leaves out the pods that matter least of a receipt that is too long.
fn cut(publication: &mut Publication, now: Timestamp) {
    let too_long = document::detail(publication, now).len().saturating_sub(MOST_BYTES);
    publication.receipt.shorten(too_long);
}

#[cfg(test)]
mod tests;
