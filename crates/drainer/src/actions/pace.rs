//! The pace of planned maintenance: a drain looks at the others of its group and zone before its claim, and again after it. While
//! too many go on, the drain is postponed, and a claim that is one too many is taken back before the first eviction.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::{Api, Client, ResourceExt as _};
use spillway_core::decision::{self, Decision};
use spillway_core::drain::report::{DrainEnd, DrainReport, StopReason};
use spillway_core::node::observed::ObservedNode;
use spillway_core::node::pace::{OtherDrains, Turn};
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

/// How long to retry a look at the other nodes. A drain is worth more than its pace.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often a drain looks whether later claims have been taken back, and the longest pause between two looks.
const LOOKS: u32 = 10;
const PAUSE: Duration = Duration::from_secs(2);
/// Time over which drains that wait look again, so that those of one maintenance do not come back together.
const SPREAD: Duration = Duration::from_mins(1);

/// Postpones a drain before its claim, if as many others go on as may. `None`: the node may be claimed.
pub(super) async fn before_claim(
    context: &Context,
    target: &Target<'_>,
    record: &mut Record,
) -> Result<Option<Outcome>, Failure> {
    let Some(starts) = paced_start(target.attempt) else { return Ok(None) };
    let (attempt, instance) = (target.attempt, target.instance);
    let doing = format!("look at the nodes beside that of instance {}", instance.id);
    let looked = context.in_cluster(target.cluster, asks_until(attempt), &doing, async |client| {
        let nodes = Api::<Node>::all(client.clone());
        let Some(node) = find(&nodes, instance).await? else { return Ok(None) };
        let is_claimed = ObservedNode::of(&node).claim().is_some();
        if is_claimed || target.claimant().barred_from(&node).is_some() {
            return Ok(None);
        }
        let (name, now) = (node.name_any(), attempt.invocation.clock.now());
        let claims = pace::claims_beside(&nodes, node.labels(), now).await?;
        let Some(others) = claims.before_claim(&name, instance.group()) else { return Ok(None) };
        let turn = next_turn(attempt, &client, &name, starts).await?;
        Ok(turn.map(|begins| (begins, Postponement::Waits(others))))
    });
    give_way(context, target, looked.await.map_err(|failure| failure.text()), record).await
}

/// Takes a claim back, if as many others go on as may. `None`: the drain begins.
pub(super) async fn after_claim(
    context: &Context,
    target: &Target<'_>,
    node: &ClaimedNode,
    record: &mut Record,
) -> Result<Option<Outcome>, Failure> {
    let Some(starts) = paced_start(target.attempt) else { return Ok(None) };
    let looked = async {
        let Some(others) = surplus(target.attempt, node).await? else { return Ok(None) };
        let begins = next_turn(target.attempt, &node.client, &node.claim.node, starts).await?;
        Ok::<_, ApiError>(begins.map(|begins| (begins, Postponement::Surplus(others))))
    };
    give_way(context, target, looked.await.map_err(|error| chain(&error)), record).await
}

/// Postpones the drain if that follows from a look at the others. Without a look it goes on.
async fn give_way(
    context: &Context,
    target: &Target<'_>,
    looked: Result<Option<(Timestamp, Postponement)>, String>,
    record: &mut Record,
) -> Result<Option<Outcome>, Failure> {
    let postponed = looked.unwrap_or_else(|error| {
        tracing::warn!(error, "cannot look at the drains of other nodes; draining the node of {}", target.instance.id);
        None
    });
    let Some((begins, why)) = postponed else { return Ok(None) };
    record.decision = Some(Decision::Postpone(begins));
    postpone(context, target, begins, why, record).await.map(Some)
}

/// The start of the maintenance, if its drain is paced: it is planned, and has not begun in an earlier invocation.
fn paced_start(attempt: &Attempt<'_>) -> Option<Timestamp> {
    decision::planned_start(attempt.notice).filter(|_| attempt.history.continued_from().is_none())
}

/// The drains for which a claim is one too many, when later claims have had the time to be taken back.
async fn surplus(attempt: &Attempt<'_>, node: &ClaimedNode) -> Result<Option<OtherDrains>, ApiError> {
    let (nodes, claim) = (Api::all(node.client.clone()), &node.claim);
    let mut looks = 0;
    loop {
        looks += 1;
        let look = async || pace::claims_beside(&nodes, &claim.labels, attempt.invocation.clock.now()).await;
        match until(asks_until(attempt), look, |_| ()).await?.turn(&claim.node) {
            Turn::Now => return Ok(None),
            Turn::Soon(_) if looks < LOOKS => sleep(jittered(PAUSE)).await,
            Turn::Soon(others) | Turn::Later(others) => return Ok(Some(others)),
        }
    }
}

/// When a drain that waits looks again. `None`: it begins now, so that its pods have their grace.
async fn next_turn(
    attempt: &Attempt<'_>,
    client: &Client,
    node: &str,
    starts: Timestamp,
) -> Result<Option<Timestamp>, ApiError> {
    let grace = until(asks_until(attempt), async || longest_grace(client, node).await, |_| ()).await?;
    let (pace_ends, now) = (decision::pace_ends(starts, grace), attempt.invocation.clock.now());
    let begins = decision::next_turn(pace_ends, now);
    Ok((now < pace_ends).then(|| begins.saturating_add(jittered(SPREAD)).unwrap_or(begins)))
}

/// When to stop asking, so that what comes after has its time.
fn asks_until(attempt: &Attempt<'_>) -> Instant {
    (Instant::now() + PATIENCE).min(attempt.invocation.completes_until())
}

/// Writes into the claim that its drain is over, if other drains may wait for it.
pub(super) async fn end(attempt: &Attempt<'_>, node: &ClaimedNode, report: &DrainReport) {
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
    if let Err(error) = until(asks_until(attempt), written, |_| ()).await {
        let (name, error) = (&claim.node, chain(&error));
        tracing::warn!(
            node.name = name,
            error,
            "cannot write on node {name} that its drain is over: others of its group may wait for longer"
        );
    }
}
