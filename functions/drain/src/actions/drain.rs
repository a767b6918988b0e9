//! Draining a node: claim it, empty it, let the instance go.

use std::future::pending;
use std::pin::{Pin, pin};

use kube::{Api, Client};
use spillway_eks::ClusterName;
use tokio::time::Instant;

use super::cannot;
use crate::aws::instance::{Instance, ManagedBy};
use crate::context::target::Attempt;
use crate::decision::Reason;
use crate::drain::plan::that_leave;
use crate::drain::side_task::SideTask;
use crate::drain::{self, DrainEnd, DrainReport, StopReason};
use crate::handler::Spillway;
use crate::node::{Claim, How, until_given_back};
use crate::notice::Interruption;
use crate::publish::{self, announce_begin, tells_begin};
use crate::receipt::ending::{self, Outcome, ignored};
use crate::receipt::{Receipt, StepName};
use crate::settings::LifecycleResult;

impl Spillway {
    /// Moves the pods of the instance's node, then lets the instance go.
    pub(crate) async fn drain(
        &self,
        attempt: &Attempt<'_>,
        instance: &Instance,
        owner: ManagedBy,
        cluster: ClusterName,
        receipt: &mut Receipt,
    ) -> Outcome {
        let clock = attempt.invocation.clock;
        let window = attempt.window(&self.settings);
        receipt.window(window, (clock.now(), Instant::now()));
        let mut held = pin!(attempt.hold(&self.settings));
        let claimed = self.claim_in_time(attempt, instance, owner, &cluster, held.as_mut()).await?;
        let (connection, claim) = match claimed {
            Some(Ok(claimed)) => claimed,
            None => {
                receipt.hook_is_over();
                return Ok(ignored(&Reason::HookIsOver));
            }
            Some(Err(why)) => return self.unclaimed(why, attempt, instance, cluster, held, receipt).await,
        };
        receipt.claim(&claim);
        receipt.step(StepName::Claimed, clock.now());
        tell_claim(&claim, attempt.interruption);

        let arranged = self.arrange(attempt, &claim).await;
        let cannot_list = |error| cannot(format!("list the pods of node {}", claim.node), &cluster, error);
        let client = &connection.client;
        let listed = tokio::select! {
            listed = drain::list(client, &claim.node, window) => listed.map_err(cannot_list)?,
            () = &mut held => {
                receipt.hook_is_over();
                return ending::drained(DrainEnd::Stopped(StopReason::HookIsOver), &claim, receipt);
            }
        };
        let so_far = tells_begin(&claim, attempt.history)
            .then(|| receipt.so_far(ending::not_yet(&claim.node, attempt.interruption.kind)));
        let tell = async {
            if let Some(so_far) = so_far {
                announce_begin(
                    &so_far,
                    &that_leave(&listed.items),
                    &self.settings,
                    &self.eventbridge,
                    attempt.invocation,
                )
                .await;
            }
        };
        let mut side_task = SideTask::new(tell, attempt.invocation.completes_until());
        let stop = async {
            tokio::select! {
                () = &mut held => StopReason::HookIsOver,
                () = called_off(client, &claim, attempt.interruption) => StopReason::GivenBack,
            }
        };
        let report = drain::drain(client, &claim, &listed, window, clock, stop, &mut side_task).await;
        receipt.begin = publish::begin(&claim, attempt.history, &side_task);
        let let_go = self.let_go(attempt, &claim, &report, held, receipt);
        let (ended, ()) = tokio::join!(let_go, side_task.finish());
        let ended = ended?;
        arranged.map(|()| ended)
    }

    /// The drain is over: the hook gets its answer, and the receipt what became of the pods.
    async fn let_go(
        &self,
        attempt: &Attempt<'_>,
        claim: &Claim,
        report: &DrainReport,
        held: Pin<&mut impl Future<Output = ()>>,
        receipt: &mut Receipt,
    ) -> Outcome {
        let clock = attempt.invocation.clock;
        receipt.pods(report, (clock.now(), Instant::now()));
        let result = match report.end {
            DrainEnd::Empty | DrainEnd::Silent => Some(LifecycleResult::Continue),
            DrainEnd::TimeUp if attempt.is_cut_short() => return ending::drained(report.end, claim, receipt),
            DrainEnd::TimeUp => Some(self.settings.undrained_result),
            DrainEnd::Stopped(StopReason::HookIsOver) => {
                receipt.hook_is_over();
                None
            }
            DrainEnd::Stopped(StopReason::GivenBack) => None,
        };
        receipt.step(StepName::Drained, clock.now());
        if let Some(result) = result {
            self.complete(attempt, result, held, receipt).await?;
        }
        ending::drained(report.end, claim, receipt)
    }
}

/// Ends when the node has been given back; never if its instance goes in any case, or the claim is another notice's.
async fn called_off(client: &Client, claim: &Claim, interruption: &Interruption) {
    if !interruption.kind.may_be_called_off() || claim.holder != interruption.event_id {
        return pending().await;
    }
    until_given_back(&Api::all(client.clone()), &claim.node).await;
}

fn tell_claim(claim: &Claim, interruption: &Interruption) {
    let node = &claim.node;
    let how = match &claim.how {
        How::First => format!("cordoned node {node}"),
        How::CordonedByOthers => {
            format!("node {node} was cordoned by somebody else; draining it, and leaving the cordon")
        }
        How::Again => format!("node {node} is ours from an earlier attempt; going on"),
        How::Joined { notice, event } => format!("node {node} is being drained for the {notice} {event}; joining"),
    };
    tracing::info!(node.name = node, instance.id = %interruption.instance, notice.kind = interruption.kind.as_str(), "{how}");
}
