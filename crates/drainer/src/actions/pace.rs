//! The pace of planned drains: a drain that has claimed its node gives way, before its first eviction, while too many others of
//! its group and zone go on.

use std::time::Duration;

use kube::Api;
use spillway_core::decision::{self, Decision};
use spillway_core::drain::report::{DrainEnd, DrainReport, StopReason};
use spillway_core::node::pace::Turn;
use spillway_core::outcome::Outcome;
use spillway_retry::jittered;
use spillway_startup::logs::chain;
use tokio::time::{Instant, sleep};

use super::postpone::postpone;
use crate::context::{Attempt, Context, Target};
use crate::failure::Failure;
use crate::kube::{ApiError, until};
use crate::node::{ClaimedNode, pace};
use crate::receipt::record::Record;

/// How long to retry a look at the other nodes, and a word to them. A drain is worth more than its pace.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often a drain looks whether those behind it have given way, and the pause before it looks again at most.
const LOOKS: u32 = 10;
const PAUSE: Duration = Duration::from_secs(2);

/// Whether the target's node, which is claimed, is drained now; if not, it is given back, and a schedule brings the notice back.
pub(super) async fn give_way(
    context: &Context,
    target: &Target<'_>,
    node: &ClaimedNode,
    record: &mut Record,
) -> Result<Option<Outcome>, Failure> {
    let Attempt { notice, history, invocation, .. } = target.attempt;
    let Some(at_once) = context.settings.maintenance_at_once else { return Ok(None) };
    let Some(braked_until) = decision::braked_until(notice, &context.settings) else { return Ok(None) };
    // An earlier invocation has asked, and begun.
    if history.continued_from().is_some() {
        return Ok(None);
    }
    let nodes = Api::all(node.client.clone());
    let name = &node.claim.node;
    let log = |error: &ApiError| {
        tracing::warn!(node.name = name, error = chain(&error), "cannot look at the nodes beside {name}");
    };
    let mut looks = 0;
    let obstacle = loop {
        looks += 1;
        let end = Instant::now() + PATIENCE;
        if braked_until <= invocation.clock.now() {
            return Ok(None);
        }
        let zone = match until(end, async || pace::zone_of(&nodes, &node.claim).await, log).await {
            Ok(zone) => zone,
            Err(error) => {
                log(&error);
                return Ok(None);
            }
        };
        match zone.turn(name, at_once, invocation.clock.now()) {
            Turn::Now => return Ok(None),
            Turn::Soon(_) if looks < LOOKS => sleep(jittered(PAUSE)).await,
            Turn::Soon(obstacle) | Turn::Later(obstacle) => break obstacle,
        }
    };
    let begins = decision::next_turn(notice, braked_until, invocation.clock.now());
    tracing::info!(node.name = name, "the drain of node {name} gives way until {begins}: {obstacle}");
    record.decision = Some(Decision::Postpone(begins));
    postpone(context, target, begins, Some(obstacle), record).await.map(Some)
}

/// Tells other drains that this one is over, if they may wait for it. Beside what else is left to do.
pub(super) async fn end(context: &Context, attempt: &Attempt<'_>, node: &ClaimedNode, report: &DrainReport) {
    let Attempt { notice, .. } = attempt;
    let goes_on = report.end == DrainEnd::TimeUp && attempt.is_cut_short();
    let is_paced = context.settings.maintenance_at_once.is_some()
        && decision::braked_until(notice, &context.settings).is_some()
        && node.claim.holder == notice.event_id;
    if goes_on || !is_paced || report.end == DrainEnd::Stopped(StopReason::GivenBack) {
        return;
    }
    let (nodes, name) = (Api::all(node.client.clone()), &node.claim.node);
    let said = async || pace::tell_over(&nodes, &node.claim, &notice.event_id).await;
    if let Err(error) = until(Instant::now() + PATIENCE, said, |_| ()).await {
        let error = chain(&error);
        tracing::warn!(
            node.name = name,
            error,
            "cannot say that the drain of node {name} is over: others wait for it until its maintenance starts"
        );
    }
}
