//! The pace of drains that can wait: one that has claimed its node gives way, before its first eviction, while too many others of
//! its group and zone go on. The node of maintenance is given back; that of a hook stays cordoned, and the hook is held.

use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use spillway_core::decision::{self, Brake, Decision};
use spillway_core::drain::report::{DrainEnd, DrainReport, StopReason};
use spillway_core::node::claimant::How;
use spillway_core::node::pace::{Obstacle, Turn};
use spillway_core::outcome::{DrainOutcome, Outcome};
use spillway_notice::Deadline;
use spillway_retry::jittered;
use spillway_startup::logs::chain;
use tokio::time::{Instant, sleep, sleep_until};

use super::postpone::postpone;
use crate::context::{Attempt, Context, Target};
use crate::failure::Failure;
use crate::kube::{ApiError, until};
use crate::node::{ClaimedNode, pace};
use crate::receipt::record::{HookStatus, Record};

/// How long to retry a look at the other nodes, and a word to them. A drain is worth more than its pace.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often a drain looks whether those behind it have given way, and the pause before it looks again at most.
const LOOKS: u32 = 10;
const PAUSE: Duration = Duration::from_secs(2);
/// How often a hook looks whether it is its turn: a list of the zone's nodes.
const HOOK_LOOKS_EVERY: Duration = Duration::from_secs(30);

/// Lets a drain that has claimed its node begin (`None`), or gives way to others. Then a maintenance gives its node back and comes
/// again by a schedule. A hook waits here, and goes on waiting in later invocations.
pub(super) async fn give_way(
    context: &Context,
    target: &Target<'_>,
    node: &ClaimedNode,
    record: &mut Record,
) -> Result<Option<Outcome>, Failure> {
    let Attempt { notice, history, invocation, .. } = target.attempt;
    let Some(brake) = target.attempt.brake() else { return Ok(None) };
    let is_hook = notice.deadline == Deadline::HeldByHook;
    let has_begun = if is_hook {
        // An earlier invocation of a hook may only have waited: it knows no pod.
        history.earlier.iter().any(|earlier| !earlier.pods.is_empty())
    } else {
        history.continued_from().is_some()
    };
    if has_begun {
        return Ok(None);
    }
    let others = Others { attempt: target.attempt, node, nodes: Api::all(node.client.clone()), brake };
    if is_hook && node.claim.how == How::Again {
        others.tell_idle(false).await;
    }
    let Some(obstacle) = others.settled().await else { return Ok(None) };
    if is_hook {
        return others.wait(obstacle, record).await;
    }
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
        self.obstacle().await
    }

    async fn obstacle(&self) -> Option<Obstacle> {
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

    /// Waits until it is a hook's turn, or leaves that to a later invocation. Meanwhile others do not count its node.
    async fn wait(&self, mut obstacle: Obstacle, record: &mut Record) -> Result<Option<Outcome>, Failure> {
        let node = &self.node.claim.node;
        loop {
            self.tell_idle(true).await;
            tracing::info!(node.name = node, "the hook of node {node} waits for its turn: {obstacle}");
            while let Some(still) = self.obstacle().await {
                obstacle = still;
                tokio::select! {
                    biased;
                    () = self.attempt.wait_until_action_is_over() => {
                        record.hook = HookStatus::AlreadyOver(None);
                        return Ok(Some(DrainOutcome::HookOver { node: node.clone(), lost: None }.into()));
                    }
                    () = sleep_until(self.attempt.invocation.drains_until()) => {
                        return Err(Failure::Waits { node: node.clone(), obstacle });
                    }
                    () = sleep(HOOK_LOOKS_EVERY / 2 + jittered(HOOK_LOOKS_EVERY / 2)) => {}
                }
            }
            self.tell_idle(false).await;
            match self.settled().await {
                Some(settled) => obstacle = settled,
                None => return Ok(None),
            }
        }
    }

    /// When to stop asking, so that what comes after has its time.
    fn asks_until(&self) -> Instant {
        (Instant::now() + PATIENCE).min(self.attempt.invocation.completes_until())
    }

    /// Tells other drains whether they need not wait for this one.
    async fn tell_idle(&self, idle: bool) {
        let (claim, event) = (&self.node.claim, &self.attempt.notice.event_id);
        let said = async || pace::tell_idle(&self.nodes, claim, event, idle).await;
        if let Err(error) = until(self.asks_until(), said, |_| ()).await {
            let (name, error) = (&claim.node, chain(&error));
            tracing::warn!(
                node.name = name,
                error,
                "cannot say on node {name} whether its drain goes on: others of its group may wait for longer, or more go on at once"
            );
        }
    }
}

/// Tells other drains that this one is over, if they may wait for it. Beside what else is left to do.
pub(super) async fn end(attempt: &Attempt<'_>, node: &ClaimedNode, report: &DrainReport) {
    let goes_on = match report.end {
        DrainEnd::TimeUp => attempt.is_cut_short(),
        DrainEnd::Stopped(reason) => reason == StopReason::GivenBack,
        DrainEnd::Empty | DrainEnd::Silent | DrainEnd::Stuck => false,
    };
    if let Some(brake) = attempt.brake().filter(|_| !goes_on && node.claim.holder == attempt.notice.event_id) {
        Others { attempt, node, nodes: Api::all(node.client.clone()), brake }.tell_idle(true).await;
    }
}
