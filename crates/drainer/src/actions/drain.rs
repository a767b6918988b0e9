//! Drain of a node: claim it, empty it, complete the lifecycle hook.

use std::future::pending;

use futures_util::FutureExt as _;
use kube::{Api, Client};
use spillway_core::cluster::ClusterName;
use spillway_core::drain::plan::pods_to_move;
use spillway_core::drain::report::{DrainEnd, DrainReport, StopReason};
use spillway_core::node::claimant::{Claim, How};
use spillway_core::outcome::{DrainOutcome, not_yet};
use spillway_notice::Notice;
use spillway_settings::LifecycleResult;
use tokio::time::Instant;

use super::claim::{Claiming, Purpose, claim, hook_over, keep_trying_to_cordon};
use super::{Next, after_drain, lifecycle, pace, undo_check};
use crate::context::target::beside;
use crate::context::{Attempt, Context, Target};
use crate::drain::side_task::SideTask;
use crate::drain::{self, Drain};
use crate::failure::Failure;
use crate::kube::ApiError;
use crate::node::{ClaimedNode, until_given_back};
use crate::publish::{publish_begin, publish_blockage, publishes_begin};
use crate::receipt::record::{HookStatus, Record};
use crate::receipt::{Counts, Fate, Publication, StepName, Subject};

/// Maximum number of pods that a failure names; the receipt lists all.
const PODS_IN_A_REASON: usize = 3;

/// Evicts the pods of the target's node, then completes the lifecycle action.
pub(crate) async fn drain(context: &Context, target: &Target<'_>, record: &mut Record) -> Result<Next, Failure> {
    let Target { attempt, cluster, .. } = target;
    record.window = Some(attempt.window);
    if let Some(postponed) = Box::pin(pace::before_claim(context, target, record)).await? {
        return Ok(Next::Done(postponed));
    }
    let claim_began = Instant::now();
    // On the heap: beside the drain it would be too large for a thread's stack in a debug build.
    let hook = attempt.window_of_hook().boxed_local().shared();
    let node = match beside(claim(context, target, Purpose::Drain, record), hook.clone()).await? {
        Claiming::Claimed(node) => node,
        Claiming::Ended(next) => return Ok(next),
    };
    if let Some(postponed) = Box::pin(pace::after_claim(context, target, &node, record)).await? {
        return Ok(Next::Done(postponed));
    }
    let ClaimedNode { claim, client } = &node;
    log_claim(claim, attempt.notice);

    let arranged = undo_check::arrange(context, attempt, claim).await;
    let listed = tokio::select! {
        biased;
        listed = drain::list_claimed(&node, claim_began, attempt.window) => {
            listed.map_err(|error| cannot_list(claim, cluster, error))?
        }
        () = attempt.wait_until_action_is_over() => {
            record.hook = HookStatus::AlreadyOver(None);
            return Ok(Box::pin(hook_over(context, target, record)).await.into());
        }
    };
    let so_far = so_far(context, attempt, &claim.node, record);
    let begin = async {
        if publishes_begin(claim, attempt.history) {
            publish_begin(&so_far, &pods_to_move(&listed.items), context, client, attempt.invocation).await;
        }
    };
    let mut side_task = SideTask::new(begin, attempt.invocation.completes_until());
    if !claim.is_joined() {
        side_task = side_task
            .with_news(|news| publish_blockage(&so_far, news, context, client, attempt.invocation).boxed_local());
    }
    let stop = async {
        tokio::select! {
            biased;
            () = attempt.wait_until_action_is_over() => StopReason::HookIsOver,
            () = given_back(client, claim, attempt.notice) => StopReason::GivenBack,
        }
    };
    let stop = stop.shared();
    let drain = Drain::new(&node, &listed, attempt.history, claim_began, attempt.window, attempt.invocation.clock);
    // On the heap: beside one another they are too large for a thread's stack in a debug build.
    let draining = Box::pin(drain.run(hook, stop.clone(), &mut side_task));
    let report = beside(draining, Box::pin(keep_trying_to_cordon(target, &node, record))).await;
    (record.window, record.blockage) = (Some(report.window), report.blockage);
    let let_go = async {
        let waited = after_drain::wait(context, target, &node, &report, report.window.end, stop).await;
        record.after_drain = waited.durations;
        let still_held = Failure::StillHeld { node: claim.node.clone() };
        if attempt.action.is_some() && waited.is_cut_off && attempt.leaves_time_after(&still_held) {
            record.drained(&report, attempt.history, |at| attempt.ms_until(at));
            return Err(still_held);
        }
        let_go(attempt, claim, &report, record).await
    };
    let marking = Box::pin(pace::mark_over(attempt, &node, &report));
    let (outcome, (), ()) = tokio::join!(let_go, Box::pin(side_task.finish()), marking);
    let outcome = outcome?;
    arranged.map(|()| outcome.into())
}

/// Publication of a drain that has begun.
fn so_far(context: &Context, attempt: &Attempt<'_>, node: &str, record: &Record) -> Publication {
    let subject = Subject::One { notice: attempt.notice, earlier: &attempt.history.earlier };
    let reason = not_yet(node, attempt.notice.kind);
    let mut so_far = Publication::begun(attempt.invocation, subject, record, reason);
    so_far.receipt.stack.clone_from(&context.settings.stack);
    so_far
}

/// Failure of a drain whose group keeps the instance with the pods that are left.
fn kept(attempt: &Attempt<'_>, node: String, counts: &Counts, record: &Record) -> Failure {
    Failure::InstanceKept {
        node,
        left: counts.lost,
        all: counts.lost + counts.moved,
        what_blocks: pods_left(record).join("; "),
        instance: attempt.notice.instance.to_string(),
        region: attempt.invocation.home.region.clone(),
    }
}

/// First few pods that are left, each with the cause, and the number of the others.
fn pods_left(record: &Record) -> Vec<String> {
    let left = record.pods.iter().filter(|pod| matches!(pod.fate, Fate::Lost | Fate::Remaining));
    let mut left: Vec<_> = left.map(|pod| format!("{}: {}", pod.pod, pod.why())).collect();
    let more = left.len().saturating_sub(PODS_IN_A_REASON);
    left.truncate(PODS_IN_A_REASON);
    left.extend((more > 0).then(|| format!("{more} more")));
    left
}

/// Ends a drain: records the fates of the pods and completes the lifecycle action.
async fn let_go(
    attempt: &Attempt<'_>,
    claim: &Claim,
    report: &DrainReport,
    record: &mut Record,
) -> Result<DrainOutcome, Failure> {
    record.drained(report, attempt.history, |at| attempt.ms_until(at));
    let counts = Counts::of(&record.pods, &attempt.history.earlier);
    let node = claim.node.clone();
    let lost = || Failure::PodsLost { node: node.clone(), lost: counts.lost, all: counts.lost + counts.moved };
    if report.end == DrainEnd::TimeUp && attempt.is_cut_short() {
        return Err(lost());
    }
    record.step(StepName::Drained, attempt.invocation.clock.at(report.over_at));
    let result = match report.end {
        DrainEnd::Empty | DrainEnd::Silent | DrainEnd::Stuck => Some(LifecycleResult::Continue),
        DrainEnd::TimeUp => Some(lifecycle::with_pods_left(attempt)),
        DrainEnd::Stopped(StopReason::HookIsOver) => {
            record.hook = HookStatus::AlreadyOver(None);
            None
        }
        DrainEnd::Stopped(StopReason::GivenBack) => None,
    };
    if let Some(result) = result {
        lifecycle::complete(attempt, result, record).await?;
    }
    match (report.end, &claim.how) {
        (DrainEnd::Empty | DrainEnd::Silent | DrainEnd::Stuck, How::Joined { notice, event }) => {
            Ok(DrainOutcome::Joined { node, notice: notice.clone(), event: event.clone() })
        }
        (DrainEnd::Empty, _) => Ok(DrainOutcome::Drained { node, counts }),
        (DrainEnd::Silent, _) => Ok(DrainOutcome::Silent { node, counts }),
        (DrainEnd::Stuck, _) => Ok(DrainOutcome::Stuck { node, counts }),
        (DrainEnd::Stopped(StopReason::GivenBack), _) => Ok(DrainOutcome::GivenBack { node }),
        (DrainEnd::Stopped(StopReason::HookIsOver), _) => {
            Ok(DrainOutcome::HookOver { node, lost: Some(counts.lost).filter(|_| !record.pods.is_empty()) })
        }
        (DrainEnd::TimeUp, _) if attempt.is_kept() => Err(kept(attempt, node, &counts, record)),
        (DrainEnd::TimeUp, _) => Err(lost()),
    }
}

fn cannot_list(claim: &Claim, cluster: &ClusterName, error: ApiError) -> Failure {
    let doing = format!("list the pods of node {}", claim.node);
    Failure::Kubernetes { doing, cluster: cluster.clone(), error }
}

/// Waits until the node is given back. Never ends if the instance goes in any case, or if another notice holds the claim.
async fn given_back(client: &Client, claim: &Claim, notice: &Notice) {
    if !notice.kind.may_be_called_off() || claim.holder != notice.event_id {
        return pending().await;
    }
    until_given_back(&Api::all(client.clone()), claim).await;
}

fn log_claim(claim: &Claim, notice: &Notice) {
    let node = &claim.node;
    let how = match &claim.how {
        How::First => format!("cordoned node {node}"),
        How::CordonedByOthers => {
            format!("node {node} was already cordoned; draining it and keeping that cordon")
        }
        How::Again => format!("node {node} was claimed for this notice before; continuing its drain"),
        How::Joined { notice, event } => {
            format!("node {node} is being drained for the {notice} {event}; joining that drain")
        }
        How::Denied(status) => {
            let error = &status.message;
            tracing::warn!(node.name = node, error, "cannot cordon node {node}; evicting its pods anyway");
            return;
        }
    };
    tracing::info!(node.name = node, instance.id = %notice.instance, notice.kind = notice.kind.as_str(), "{how}");
}

#[cfg(test)]
mod tests {
    use kube::core::Status;
    use spillway_notice::Deadline;
    use spillway_notice::Kind;

    use super::*;
    use crate::test_support::log::logged;
    use crate::test_support::notice;

    #[test]
    fn claim_is_logged_with_its_consequence() {
        let joined = How::Joined { notice: "spot notice".to_owned(), event: "e-0".to_owned() };
        let denied = How::Denied(Box::new(Status::failure("a webhook says no", "Forbidden")));
        let lines = logged(|| {
            for how in [How::First, How::CordonedByOthers, How::Again, joined, denied] {
                let (node, holder) = ("n-1".to_owned(), "e-1".to_owned());
                let claim = Claim { node, provider_id: String::new(), how, holder, labels: [].into(), cordoned: None };
                log_claim(&claim, &notice(Kind::Spot, Deadline::Open));
            }
        });
        insta::assert_snapshot!(lines.join("\n"));
    }
}
