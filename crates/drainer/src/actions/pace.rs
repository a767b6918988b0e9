//! The pace of maintenance: a drain that has claimed its node gives the node back before its first eviction, while too many others
//! of its group and zone go on.

use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use spillway_core::decision::{self, Brake, Decision};
use spillway_core::drain::report::{DrainEnd, DrainReport, StopReason};
use spillway_core::node::pace::{Obstacle, Turn};
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

/// Lets a drain that has claimed its node begin (`None`), or gives the node back until a schedule brings the notice again.
pub(super) async fn give_way(
    context: &Context,
    target: &Target<'_>,
    node: &ClaimedNode,
    record: &mut Record,
) -> Result<Option<Outcome>, Failure> {
    let Attempt { notice, history, invocation, .. } = target.attempt;
    let Some(brake) = target.attempt.brake().filter(|_| history.continued_from().is_none()) else { return Ok(None) };
    let others = Others { attempt: target.attempt, node, nodes: Api::all(node.client.clone()), brake };
    let Some(obstacle) = others.settled().await else { return Ok(None) };
    let begins = decision::next_turn(notice, brake.until, invocation.clock.now());
    let name = &node.claim.node;
    tracing::info!(node.name = name, "the drain of node {name} gives way until {begins}: {obstacle}");
    record.decision = Some(Decision::Postpone(begins));
    postpone(context, target, begins, Some(obstacle), record).await.map(Some)
}

/// The drains beside one that can wait.
struct Others<'a> {
    attempt: &'a Attempt<'a>,
    node: &'a ClaimedNode,
    nodes: Api<Node>,
    brake: Brake,
}

impl Others<'_> {
    /// What keeps the drain from beginning, when those behind it have had the time to give way.
    async fn settled(&self) -> Option<Obstacle> {
        for _ in 1..LOOKS {
            match self.look().await {
                Turn::Now => return None,
                Turn::Soon(_) => sleep(jittered(PAUSE)).await,
                Turn::Later(obstacle) => return Some(obstacle),
            }
        }
        match self.look().await {
            Turn::Now => None,
            Turn::Soon(obstacle) | Turn::Later(obstacle) => Some(obstacle),
        }
    }

    /// Looks once. When nothing brakes it any more, or the nodes cannot be listed, it is its turn.
    async fn look(&self) -> Turn {
        let (claim, clock) = (&self.node.claim, self.attempt.invocation.clock);
        let name = &claim.node;
        let log = |error: &ApiError| {
            tracing::warn!(node.name = name, error = chain(&error), "cannot look at the nodes beside {name}");
        };
        if self.brake.until <= clock.now() {
            return Turn::Now;
        }
        match until(self.asks_until(), async || pace::zone_of(&self.nodes, claim).await, log).await {
            Ok(zone) => zone.turn(name, self.brake.at_once, clock.now()),
            Err(error) => {
                log(&error);
                Turn::Now
            }
        }
    }

    /// When to stop asking, so that what comes after has its time.
    fn asks_until(&self) -> Instant {
        (Instant::now() + PATIENCE).min(self.attempt.invocation.completes_until())
    }

    /// Says in the claim that the drain is over.
    async fn tell_over(&self) {
        let (claim, event) = (&self.node.claim, &self.attempt.notice.event_id);
        let said = async || pace::tell_over(&self.nodes, claim, event).await;
        if let Err(error) = until(self.asks_until(), said, |_| ()).await {
            let (name, error) = (&claim.node, chain(&error));
            tracing::warn!(
                node.name = name,
                error,
                "cannot say on node {name} that its drain is over: others of its group may wait for longer"
            );
        }
    }
}

/// Tells other drains that this one is over, if they may wait for it. Beside what else is left to do.
pub(super) async fn end(attempt: &Attempt<'_>, node: &ClaimedNode, report: &DrainReport) {
    let goes_on = match report.end {
        DrainEnd::TimeUp => attempt.is_cut_short(),
        DrainEnd::Parked(_) => true,
        DrainEnd::Stopped(reason) => reason == StopReason::GivenBack,
        DrainEnd::Empty | DrainEnd::Silent | DrainEnd::Stuck => false,
    };
    if let Some(brake) = attempt.brake().filter(|_| !goes_on && node.claim.holder == attempt.notice.event_id) {
        Others { attempt, node, nodes: Api::all(node.client.clone()), brake }.tell_over().await;
    }
}
