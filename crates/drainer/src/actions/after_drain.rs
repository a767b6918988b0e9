//! After a drain, waits until volumes are detached and load balancers have deregistered the instance.

use std::time::Duration;

use spillway_core::drain::report::{DrainEnd, DrainReport, StopReason};
use spillway_core::drain::volumes::VOLUME_WAIT;
use spillway_settings::LoadBalancers;
use spillway_startup::logs::chain;
use tokio::time::Instant;

use crate::aws::target_groups;
use crate::context::{Context, Target};
use crate::drain::volumes::until_detached;
use crate::node::ClaimedNode;
use crate::receipt::AfterDrain;

/// Maximum wait for load balancers to deregister the instance: twice the default deregistration delay.
const LET_GO_WITHIN: Duration = Duration::from_secs(600);

pub(super) struct Waited {
    /// Durations of the waits for volumes, load balancers and pods bound after the cordon. `None` if there was no wait.
    pub(super) durations: Option<AfterDrain>,
    /// `true` if a volume or load balancer may still use the instance at the end of the wait.
    pub(super) is_unfinished: bool,
}

/// Waits for volumes and load balancers until `end` or `stop`. Returns at once if pods are left or no lifecycle hook holds the
/// instance.
pub(super) async fn wait(
    context: &Context,
    target: &Target<'_>,
    node: &ClaimedNode,
    report: &DrainReport,
    end: Instant,
    stop: impl Future<Output = StopReason> + Clone,
) -> Waited {
    let begin = Instant::now();
    let is_held = target.attempt.action.is_some() && report.end == DrainEnd::Empty;
    let volumes = async {
        let end = end.min(begin + VOLUME_WAIT);
        if !is_held {
            return None;
        }
        until_detached(&node.client, &node.claim.node, report, end, stop.clone()).await
    };
    let targets = async {
        if !is_held || context.settings.load_balancers != LoadBalancers::Wait {
            return None;
        }
        tokio::select! {
            biased;
            left = targets_left(context, target, end.min(begin + LET_GO_WITHIN)) => left,
            _ = stop.clone() => None,
        }
        .map(|left| (begin.elapsed(), left))
    };
    let (volumes, targets) = tokio::join!(volumes, targets);
    let may_be_left =
        volumes.is_some_and(|volumes| volumes.left != Some(0)) || targets.is_some_and(|(_, left)| left > 0);
    let waited = AfterDrain {
        late_pods_ms: ms(report.ended_at - report.emptied_at),
        volumes_ms: volumes.map(|volumes| ms(volumes.waited)),
        volumes_attached: volumes.and_then(|volumes| volumes.left).filter(|left| *left > 0),
        targets_ms: targets.map(|(waited, _)| ms(waited)),
        targets_left: targets.map(|(_, left)| left).filter(|left| *left > 0),
    };
    let durations = Some(waited).filter(|waited| *waited != AfterDrain::default());
    Waited { durations, is_unfinished: may_be_left && end <= Instant::now() }
}

/// Waits until load balancers have deregistered the instance. Returns the number of target groups that have the instance after
/// the wait. `None` if no target group had the instance at first, or if the target groups cannot be read.
async fn targets_left(context: &Context, target: &Target<'_>, end: Instant) -> Option<usize> {
    let Target { instance, cluster, .. } = target;
    match target_groups::until_drained(&context.load_balancing, &instance.id, cluster, end).await {
        Ok(left) => {
            if let Some(left @ 1..) = left {
                let instance = &instance.id;
                tracing::warn!("instance {instance} is still a target in {left} target groups; waiting no longer");
            }
            left
        }
        Err(error) => {
            tracing::warn!(
                error = chain(&error),
                "cannot read the target groups of the instance; not waiting for load balancers"
            );
            None
        }
    }
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
