//! Postpones a drain for maintenance if too many nodes of the Auto Scaling group and zone are being drained. Counts the drains
//! before and after the node is claimed, because several drains may claim nodes at the same time.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::{Api, Client, ResourceExt as _};
use spillway_core::decision::{self, Decision};
use spillway_core::drain::report::{DrainEnd, DrainReport, StopReason};
use spillway_core::node::observed::ObservedNode;
use spillway_core::node::pace::{OtherDrains, PaceDecision};
use spillway_core::outcome::Outcome;
use spillway_retry::jittered;
use spillway_startup::logs::chain;
use tokio::time::{Instant, sleep};

use super::postpone::{Postponement, postpone};
use crate::context::{Attempt, Context, Target};
use crate::drain::longest_grace;
use crate::failure::Failure;
use crate::kube::{ApiError, until};
use crate::node::{ClaimedNode, find, pace};
use crate::receipt::record::Record;

/// Maximum time of a request to the API server, including retries. If the other drains cannot be counted in this time, the drain
/// begins.
const RETRIED_FOR: Duration = Duration::from_secs(10);
/// Maximum number of times that other drains are counted after the claim.
const COUNTS: u32 = 10;
/// Maximum pause between two counts.
const PAUSE: Duration = Duration::from_secs(2);
/// Maximum random delay of a postponed drain, so that postponed drains do not retry at the same time.
const SPREAD: Duration = Duration::from_mins(1);

/// Postpones the drain if the limit of concurrent drains is reached. Returns `None` if the node may be claimed.
pub(super) async fn before_claim(
    context: &Context,
    target: &Target<'_>,
    record: &mut Record,
) -> Result<Option<Outcome>, Failure> {
    let Some(starts) = paced_start(target.attempt) else { return Ok(None) };
    let (attempt, instance) = (target.attempt, target.instance);
    let doing = format!("count the drains beside that of instance {}", instance.id);
    let counted = context.in_cluster(target.cluster, request_deadline(attempt), &doing, async |client| {
        let nodes = Api::<Node>::all(client.clone());
        let Some(node) = find(&nodes, instance).await? else { return Ok(None) };
        let is_claimed = ObservedNode::of(&node).claim().is_some();
        if is_claimed || target.claimant().barred_from(&node).is_some() {
            return Ok(None);
        }
        let (name, now) = (node.name_any(), attempt.invocation.clock.now());
        let claims = pace::claims_beside(&nodes, node.labels(), now).await?;
        let Some(others) = claims.before_claim(&name, instance.group()) else { return Ok(None) };
        let turn = next_attempt(attempt, &client, &name, starts).await?;
        Ok(turn.map(|begins| (begins, Postponement::Waits(others))))
    });
    postpone_if_surplus(context, target, counted.await.map_err(|failure| failure.text()), record).await
}

/// Postpones the drain if other drains reach the limit of concurrent drains. Returns `None` if the drain may begin.
pub(super) async fn after_claim(
    context: &Context,
    target: &Target<'_>,
    node: &ClaimedNode,
    record: &mut Record,
) -> Result<Option<Outcome>, Failure> {
    let Some(starts) = paced_start(target.attempt) else { return Ok(None) };
    let counted = async {
        let Some(others) = drains_above_limit(target.attempt, node).await? else { return Ok(None) };
        let begins = next_attempt(target.attempt, &node.client, &node.claim.node, starts).await?;
        Ok::<_, ApiError>(begins.map(|begins| (begins, Postponement::Surplus(others))))
    };
    postpone_if_surplus(context, target, counted.await.map_err(|error| chain(&error)), record).await
}

/// Postpones the drain if `turn` contains a time. Otherwise returns `None`, and the caller drains now.
async fn postpone_if_surplus(
    context: &Context,
    target: &Target<'_>,
    turn: Result<Option<(Timestamp, Postponement)>, String>,
    record: &mut Record,
) -> Result<Option<Outcome>, Failure> {
    let postponed = turn.unwrap_or_else(|error| {
        tracing::warn!(error, "cannot count the drains of other nodes; draining the node of {}", target.instance.id);
        None
    });
    let Some((begins, why)) = postponed else { return Ok(None) };
    record.decision = Some(Decision::Postpone(begins));
    postpone(context, target, begins, why, record).await.map(Some)
}

/// Returns the planned start of the maintenance. `None` if the limit of concurrent drains does not apply.
fn paced_start(attempt: &Attempt<'_>) -> Option<Timestamp> {
    decision::planned_start(attempt.notice).filter(|_| attempt.history.continued_from().is_none())
}

/// Returns the number of other drains if they reach the limit of concurrent drains. First waits for other drains to remove
/// newer claims.
async fn drains_above_limit(attempt: &Attempt<'_>, node: &ClaimedNode) -> Result<Option<OtherDrains>, ApiError> {
    let (nodes, claim) = (Api::all(node.client.clone()), &node.claim);
    let mut counts = 0;
    loop {
        counts += 1;
        let count = async || pace::claims_beside(&nodes, &claim.labels, attempt.invocation.clock.now()).await;
        match until(request_deadline(attempt), count, |_| ()).await?.turn(&claim.node) {
            PaceDecision::Now => return Ok(None),
            PaceDecision::Soon(_) if counts < COUNTS => sleep(jittered(PAUSE)).await,
            PaceDecision::Soon(others) | PaceDecision::Later(others) => return Ok(Some(others)),
        }
    }
}

/// Returns the time of the drain's next attempt. `None` if a later drain would shorten the pods' grace periods.
async fn next_attempt(
    attempt: &Attempt<'_>,
    client: &Client,
    node: &str,
    starts: Timestamp,
) -> Result<Option<Timestamp>, ApiError> {
    let grace = until(request_deadline(attempt), async || longest_grace(client, node).await, |_| ()).await?;
    let (latest_start, now) = (decision::latest_start(starts, grace), attempt.invocation.clock.now());
    let begins = decision::next_attempt(latest_start, now);
    Ok((now < latest_start).then(|| begins.saturating_add(jittered(SPREAD)).unwrap_or(begins)))
}

fn request_deadline(attempt: &Attempt<'_>) -> Instant {
    (Instant::now() + RETRIED_FOR).min(attempt.invocation.completes_until())
}

/// Records in the claim that the drain is over, so that a postponed drain may begin.
pub(super) async fn mark_drain_over(attempt: &Attempt<'_>, node: &ClaimedNode, report: &DrainReport) {
    let goes_on = match report.end {
        DrainEnd::TimeUp => attempt.is_cut_short(),
        DrainEnd::Stopped(reason) => reason == StopReason::GivenBack,
        DrainEnd::Empty | DrainEnd::Silent | DrainEnd::Stuck => false,
    };
    let (claim, event) = (&node.claim, &attempt.notice.event_id);
    if goes_on || decision::planned_start(attempt.notice).is_none() || claim.holder != *event {
        return;
    }
    let nodes = Api::all(node.client.clone());
    let written = async || pace::set_over(&nodes, claim, event).await;
    if let Err(error) = until(request_deadline(attempt), written, |_| ()).await {
        let (name, error) = (&claim.node, chain(&error));
        tracing::warn!(
            node.name = name,
            error,
            "cannot mark the drain of node {name} as over; other drains of its group may wait longer"
        );
    }
}
