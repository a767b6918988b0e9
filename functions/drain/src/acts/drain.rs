//! Draining a node: claim it, empty it, let the instance go.

use std::pin::pin;

use spillway_eks::ClusterName;
use tokio::time::Instant;

use super::cannot;
use crate::attempt::Attempt;
use crate::decision::Reason;
use crate::drain::beside::Claimed;
use crate::drain::{self, End};
use crate::ending::{self, Outcome, ignored};
use crate::handler::Spillway;
use crate::instance::{Instance, Owner};
use crate::interruption::Interruption;
use crate::node::{Claim, How};
use crate::receipt::{Receipt, StepName};
use crate::settings::LifecycleResult;

impl Spillway {
    /// Moves the pods of the instance's node, then lets the instance go.
    pub(crate) async fn drain(
        &self,
        attempt: &Attempt<'_>,
        instance: &Instance,
        owner: Owner,
        cluster: ClusterName,
        receipt: &mut Receipt,
    ) -> Outcome {
        let clock = attempt.invocation.clock;
        let window = attempt.window(&self.settings);
        receipt.window(window, (clock.now(), Instant::now()));
        let mut held = pin!(attempt.hold(&self.settings));
        let claimed = tokio::select! {
            claimed = self.claim(attempt, instance, owner, &cluster) => claimed?,
            () = &mut held => {
                receipt.hook_is_over();
                return Ok(ignored(&Reason::HookIsOver));
            }
        };
        let (kubernetes, Claimed { claim, pods }) = match claimed {
            Ok(claimed) => claimed,
            Err(why) => return self.unclaimed(why, attempt, instance, cluster, held, receipt).await,
        };
        receipt.node = Some(claim.node.clone());
        receipt.step(StepName::Claimed, clock.now());
        tell_claim(&claim, attempt.interruption);

        let arranged = self.arrange(attempt, &claim).await;
        let report = drain::drain(&kubernetes, &claim, pods, window, clock, &mut held)
            .await
            .map_err(|error| cannot(format!("list the pods of node {}", claim.node), &cluster, error))?;
        receipt.pods(&report, (clock.now(), Instant::now()));
        let result = match report.end {
            End::Empty | End::Silent => Some(LifecycleResult::Continue),
            End::TimeUp if attempt.is_cut_short() => return ending::drained(report.end, &claim, receipt),
            End::TimeUp => Some(self.settings.undrained_result),
            End::Stopped => None,
        };
        receipt.step(StepName::Drained, clock.now());
        match result {
            Some(result) => self.complete(attempt, result, held, receipt).await?,
            None => receipt.hook_is_over(),
        }
        let ended = ending::drained(report.end, &claim, receipt)?;
        arranged.map(|()| ended)
    }
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
