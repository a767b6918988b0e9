//! Drains a node: claims the node, evicts its pods, completes the lifecycle action.

use std::future::pending;

use futures_util::FutureExt as _;
use futures_util::future::{LocalBoxFuture, Shared};
use kube::{Api, Client};
use spillway_core::drain::deadline::Window;
use spillway_core::drain::plan::pods_to_move;
use spillway_core::drain::report::{DrainEnd, DrainReport, StopReason};
use spillway_core::kube::pod::Pod;
use spillway_core::node::claimant::{Claim, ClaimResult};
use spillway_core::outcome::{DrainOutcome, not_yet};
use spillway_notice::{Kind, Notice};
use spillway_settings::LifecycleResult;
use tokio::time::Instant;

use super::claim::{Claiming, Purpose, claim, hook_over, keep_trying_to_cordon};
use super::{Next, after_drain, lifecycle, pace, replacement, undo_check};
use crate::context::target::beside;
use crate::context::{Attempt, Context, Target};
use crate::drain::side_task::SideTask;
use crate::drain::{self, Drain};
use crate::failure::Failure;
use crate::kube::watch::Listed;
use crate::node::{ClaimedNode, until_unclaimed};
use crate::publish::{publish_begin, publish_blockage, publishes_begin};
use crate::receipt::record::{HookStatus, Record};
use crate::receipt::{Counts, Fate, Publication, StepName, Subject};

/// Maximum number of pods that the text of a failure names.
const PODS_IN_A_REASON: usize = 3;

/// Drains the target's node: claims the node, schedules an undo check, evicts the pods, waits for volumes and load balancers, and
/// completes the lifecycle action. Postpones a drain for maintenance while too many nodes are being drained.
pub(crate) async fn drain(context: &Context, target: &Target<'_>, record: &mut Record) -> Result<Next, Failure> {
    let attempt = target.attempt;
    record.window = Some(attempt.window);
    if let Some(postponed) = Box::pin(pace::before_claim(context, target, record)).await? {
        return Ok(Next::Done(postponed));
    }
    let claim_began = Instant::now();
    // This future reads the hook's timeouts during the claim, because the claim must not wait for Auto Scaling.
    // Boxed: in a debug build the future is too large for a thread's stack.
    let window_by_hook = attempt.window_of_hook().boxed_local().shared();
    let node = match beside(claim(context, target, Purpose::Drain, record), window_by_hook.clone()).await? {
        Claiming::Claimed(node) => node,
        Claiming::Ended(next) => return Ok(next),
    };
    if let Some(postponed) = Box::pin(pace::after_claim(context, target, &node, record)).await? {
        return Ok(Next::Done(postponed));
    }
    log_claim(&node.claim, attempt.notice);
    // If this drain joins the claim of a spot notice, the deadline of that notice limits the window, too.
    attempt.adopt_deadline(&node.claim, target.instance);
    let limited_window = window_by_hook.map(|window| attempt.limited_to_joined_claim(window)).boxed_local().shared();
    // A failure to schedule the check must not delay the drain. It is returned after the drain.
    let arranged = undo_check::schedule_first_check(context, attempt, &node.claim).await;
    let action = DrainAction { context, target, node: &node, claim_began, limited_window, stop: stop(attempt, &node) };
    let Some(listed) = action.list().await? else {
        record.hook = HookStatus::AlreadyOver(None);
        return Ok(Box::pin(hook_over(context, target, record)).await.into());
    };
    let outcome = action.run(&listed, record).await?;
    if outcome.is_empty_node() {
        record.replaced(Box::pin(replacement::replace(context, target, &node.claim, Kind::Maintenance)).await);
    }
    arranged.map(|()| outcome.into())
}

struct DrainAction<'a> {
    context: &'a Context,
    target: &'a Target<'a>,
    node: &'a ClaimedNode,
    claim_began: Instant,
    /// Resolves to the drain's time limits, which respect the hook's timeouts.
    limited_window: Shared<LocalBoxFuture<'a, Window>>,
    stop: Shared<LocalBoxFuture<'a, StopReason>>,
}

impl DrainAction<'_> {
    /// Lists the node's pods. Returns `None` if the lifecycle action is over before the API server answers.
    async fn list(&self) -> Result<Option<Listed<Pod>>, Failure> {
        let Target { attempt, cluster, .. } = self.target;
        tokio::select! {
            biased;
            listed = drain::list_claimed(self.node, self.claim_began, attempt.limited_to_joined_claim(attempt.window)) => {
                listed.map(Some).map_err(|error| {
                    let doing = format!("list the pods of node {}", self.node.claim.node);
                    Failure::Kubernetes { doing, cluster: (*cluster).clone(), error }
                })
            }
            () = attempt.wait_until_action_is_over() => Ok(None),
        }
    }

    /// Evicts the pods, waits for volumes and load balancers, and completes the lifecycle action.
    async fn run(&self, listed: &Listed<Pod>, record: &mut Record) -> Result<DrainOutcome, Failure> {
        let begun = self.publication(record);
        let mut side_task = self.side_task(&begun, listed);
        let report = self.evict(listed, &mut side_task, record).await;
        let marking = Box::pin(pace::mark_drain_over(self.target.attempt, self.node, &report));
        let (outcome, (), ()) =
            tokio::join!(self.wait_and_complete(&report, record), Box::pin(side_task.finish()), marking);
        outcome
    }

    fn publication(&self, record: &Record) -> Publication {
        let Attempt { notice, history, invocation, .. } = self.target.attempt;
        let subject = Subject::One { notice, earlier: &history.earlier };
        let reason = not_yet(&self.node.claim.node, notice.kind);
        let mut begun = Publication::begun(invocation, subject, record, reason);
        begun.receipt.stack.clone_from(&self.context.settings.stack);
        begun
    }

    /// Returns the task that publishes the start of the drain and its blocked pods. If another notice holds the claim, the task
    /// publishes nothing.
    fn side_task<'s>(&'s self, begun: &'s Publication, listed: &'s Listed<Pod>) -> SideTask<'s> {
        let (context, ClaimedNode { claim, client }) = (self.context, self.node);
        let Attempt { history, invocation, .. } = self.target.attempt;
        let publishing = async move {
            if publishes_begin(claim, history) {
                publish_begin(begun, &pods_to_move(&listed.items), context, client, invocation).await;
            }
        };
        let side_task = SideTask::new(publishing, invocation.completes_until());
        if claim.is_joined() {
            return side_task;
        }
        side_task.with_news(move |news| publish_blockage(begun, news, context, client, invocation).boxed_local())
    }

    /// Evicts the pods until the node is empty or the drain stops. Concurrently retries a failed cordon. After a spot notice,
    /// also requests a replacement.
    async fn evict(&self, listed: &Listed<Pod>, side_task: &mut SideTask<'_>, record: &mut Record) -> DrainReport {
        let attempt = self.target.attempt;
        let (window, clock) = (attempt.limited_to_joined_claim(attempt.window), attempt.invocation.clock);
        let drain = Drain::new(self.node, listed, attempt.history, self.claim_began, window, clock);
        // Boxed: in a debug build the futures are too large for a thread's stack.
        // The drain begins with `window`, and continues with `limited_window` when Auto Scaling has answered.
        let draining = Box::pin(drain.run(self.limited_window.clone(), self.stop.clone(), side_task));
        let cordoning = Box::pin(keep_trying_to_cordon(self.target, self.node, record));
        let replacing = Box::pin(replacement::replace(self.context, self.target, &self.node.claim, Kind::Spot));
        let (report, replaced) = tokio::join!(beside(draining, cordoning), replacing);
        (record.window, record.blockage) = (Some(report.window), report.blockage);
        record.replaced(replaced);
        report
    }

    /// Waits for volumes and load balancers, then completes the lifecycle action. If a later invocation can continue the drain,
    /// returns [`Failure::StillHeld`] or [`Failure::PodsLost`] and does not complete the action.
    async fn wait_and_complete(&self, report: &DrainReport, record: &mut Record) -> Result<DrainOutcome, Failure> {
        let (attempt, node) = (self.target.attempt, &self.node.claim.node);
        let end = report.window.end;
        let waited = after_drain::wait(self.context, self.target, self.node, report, end, self.stop.clone()).await;
        record.after_drain = waited.durations;
        record.drained(report, attempt.history, |at| attempt.ms_until(at));
        let still_held = Failure::StillHeld { node: node.clone() };
        if attempt.action.is_some() && waited.is_unfinished && attempt.leaves_time_after(&still_held) {
            return Err(still_held);
        }
        let counts = Counts::of(&record.pods, &attempt.history.earlier);
        if report.end == DrainEnd::TimeUp && attempt.is_cut_short() {
            return Err(pods_lost(node, &counts));
        }
        record.step(StepName::Drained, attempt.invocation.clock.at(report.emptied_at));
        match report.end {
            DrainEnd::Empty | DrainEnd::Silent | DrainEnd::Stuck => {
                lifecycle::complete(attempt, LifecycleResult::Continue, record).await?;
            }
            DrainEnd::TimeUp => lifecycle::complete(attempt, lifecycle::with_pods_left(attempt), record).await?,
            DrainEnd::Stopped(StopReason::HookIsOver) => record.hook = HookStatus::AlreadyOver(None),
            DrainEnd::Stopped(StopReason::GivenBack) => {}
        }
        self.outcome(report.end, counts, record)
    }

    fn outcome(&self, end: DrainEnd, counts: Counts, record: &Record) -> Result<DrainOutcome, Failure> {
        let (attempt, claim) = (self.target.attempt, &self.node.claim);
        let node = claim.node.clone();
        match (end, &claim.how) {
            (DrainEnd::Empty | DrainEnd::Silent | DrainEnd::Stuck, ClaimResult::Joined { notice, event }) => {
                Ok(DrainOutcome::Joined { node, notice: notice.clone(), event: event.clone() })
            }
            (DrainEnd::Empty, _) => Ok(DrainOutcome::Drained { node, counts }),
            (DrainEnd::Silent, _) => Ok(DrainOutcome::Silent { node, counts }),
            (DrainEnd::Stuck, _) => Ok(DrainOutcome::Stuck { node, counts }),
            (DrainEnd::Stopped(StopReason::GivenBack), _) => Ok(DrainOutcome::GivenBack { node }),
            (DrainEnd::Stopped(StopReason::HookIsOver), _) => {
                Ok(DrainOutcome::HookOver { node, lost: Some(counts.lost).filter(|_| !record.pods.is_empty()) })
            }
            // This drain took over the deadline of a spot notice, and its own hook is over. The receipt of the spot notice
            // names the lost pods.
            (DrainEnd::TimeUp, _)
                if attempt.has_spot_deadline() && matches!(record.hook, HookStatus::AlreadyOver(_)) =>
            {
                Ok(DrainOutcome::HookOver { node, lost: Some(counts.lost) })
            }
            (DrainEnd::TimeUp, _) if attempt.keeps_instance() => Err(instance_kept(attempt, node, &counts, record)),
            (DrainEnd::TimeUp, _) => Err(pods_lost(&node, &counts)),
        }
    }
}

fn pods_lost(node: &str, counts: &Counts) -> Failure {
    Failure::PodsLost { node: node.to_owned(), lost: counts.lost, all: counts.lost + counts.moved }
}

fn instance_kept(attempt: &Attempt<'_>, node: String, counts: &Counts, record: &Record) -> Failure {
    Failure::InstanceKept {
        node,
        left: counts.lost,
        all: counts.lost + counts.moved,
        what_blocks: pods_left(record).join("; "),
        instance: attempt.notice.instance.to_string(),
        region: attempt.invocation.home.region.clone(),
    }
}

/// Returns up to [`PODS_IN_A_REASON`] remaining pods, each with the reason why it is left, then the number of further pods.
fn pods_left(record: &Record) -> Vec<String> {
    let left = record.pods.iter().filter(|pod| matches!(pod.fate, Fate::Lost | Fate::Remaining));
    let mut left: Vec<_> = left.map(|pod| format!("{}: {}", pod.pod, pod.why())).collect();
    let more = left.len().saturating_sub(PODS_IN_A_REASON);
    left.truncate(PODS_IN_A_REASON);
    left.extend((more > 0).then(|| format!("{more} more")));
    left
}

/// Resolves when the drain has to stop early.
fn stop<'a>(attempt: &'a Attempt<'_>, node: &'a ClaimedNode) -> Shared<LocalBoxFuture<'a, StopReason>> {
    let stop = async move {
        tokio::select! {
            biased;
            () = attempt.wait_until_action_is_over() => StopReason::HookIsOver,
            () = given_back(&node.client, &node.claim, attempt.notice) => StopReason::GivenBack,
        }
    };
    stop.boxed_local().shared()
}

/// Waits until the node's claim is removed. Waits forever if AWS cannot cancel the notice, or if another notice holds the claim.
async fn given_back(client: &Client, claim: &Claim, notice: &Notice) {
    if !notice.kind.may_stay() || claim.holder != notice.event_id {
        return pending().await;
    }
    until_unclaimed(&Api::all(client.clone()), claim).await;
}

fn log_claim(claim: &Claim, notice: &Notice) {
    let node = &claim.node;
    let how = match &claim.how {
        ClaimResult::First => format!("cordoned node {node}"),
        ClaimResult::CordonedByOthers => {
            format!("node {node} was already cordoned; draining it and keeping that cordon")
        }
        ClaimResult::Again => format!("node {node} was claimed for this notice before; continuing its drain"),
        ClaimResult::Joined { notice, event } => {
            format!("node {node} is being drained for the {notice} {event}; joining that drain")
        }
        ClaimResult::Denied(status) => {
            let error = &status.message;
            tracing::warn!(node.name = node, error, "cannot cordon node {node}; evicting its pods anyway");
            return;
        }
    };
    tracing::info!(node.name = node, instance.id = %notice.instance, notice.kind = notice.kind.as_str(), "{how}");
}
