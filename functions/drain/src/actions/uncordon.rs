//! Giving a node back: when what it was taken out for is over, and as soon as it is Ready.

use kube::Api;
use spillway_eks::ClusterName;
use tokio::time::Instant;

use crate::aws::instance::{Instance, InstanceState};
use crate::context::{Context, Target};
use crate::continuation::schedule::{Deleted, Name};
use crate::decision::Reason;
use crate::failure::Failure;
use crate::kube::ApiError;
use crate::node::NodeWatch;
use crate::node::uncordon::{UncordonCause, UncordonResult, uncordon as take_off};
use crate::notice::{Kind, Notice};
use crate::receipt::Outcome;
use crate::receipt::record::Record;

/// What is done about a node that is not Ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotReady {
    /// It is waited for.
    Wait,
    /// That is the result.
    Answer,
}

/// What is over, as the notice tells: maintenance that is still ahead was not for what was done before.
pub(super) fn cause(notice: &Notice) -> Option<UncordonCause> {
    match (notice.kind, &notice.maintenance) {
        (Kind::MaintenanceOver | Kind::Maintenance, Some(maintenance)) => {
            Some(UncordonCause::Maintenance(maintenance.id.clone()))
        }
        (Kind::Running, _) => Some(UncordonCause::Stop),
        (Kind::LaunchFromWarmPool, _) => Some(UncordonCause::WarmPool),
        (Kind::RootVolumeReplaced, _) => Some(UncordonCause::RootVolume),
        _ => None,
    }
}

/// Something is over: what was scheduled for it is not done, and the node is given back.
pub(crate) async fn uncordon(context: &Context, target: &Target<'_>, record: &mut Record) -> Result<Outcome, Failure> {
    let notice = target.attempt.notice;
    let end = target.attempt.window().end;
    let deleted = match notice.kind {
        Kind::MaintenanceOver => context.scheduler.delete(&Name::of(notice), end).await?,
        _ => Deleted::No,
    };
    let node = uncordon_claimed(context, target, end, record).await?;
    Ok(match deleted {
        Deleted::Yes => Outcome::CalledOff { instance: notice.instance.clone(), node: Box::new(node) },
        Deleted::No => node,
    })
}

async fn uncordon_claimed(
    context: &Context,
    target: &Target<'_>,
    end: Instant,
    record: &mut Record,
) -> Result<Outcome, Failure> {
    let Target { attempt, instance, cluster, .. } = target;
    let Some(cause) = cause(attempt.notice) else {
        return Ok(Outcome::Ignored(Reason::NothingToUndo(attempt.notice.kind.as_str())));
    };
    // When it runs again, that is another notice.
    if instance.state != InstanceState::Up {
        return Ok(Outcome::Ignored(Reason::NotUp(instance.id.to_string())));
    }
    let result = give_back(context, cluster, instance, &cause, end, NotReady::Wait).await?;
    record.node = result.node().map(str::to_owned);
    let (cluster, provider_id) = ((*cluster).clone(), instance.provider_id());
    Ok(Outcome::Uncordoned { result, cause, cluster, provider_id })
}

/// Takes our marks off the instance's node, if they are there for what is over. Tried until `end`.
pub(super) async fn give_back(
    context: &Context,
    cluster: &ClusterName,
    instance: &Instance,
    cause: &UncordonCause,
    end: Instant,
    not_ready: NotReady,
) -> Result<UncordonResult, Failure> {
    let mut waiting = None;
    let doing = format!("give back the node of instance {}", instance.id);
    let given_back = context.in_cluster(cluster, end, &doing, async |client| {
        let nodes = Api::all(client);
        let mut watch = None;
        loop {
            match take_off(&nodes, instance, cause).await? {
                UncordonResult::NotReadyYet { node, why } if not_ready == NotReady::Wait => {
                    waiting = Some((node.clone(), why));
                    watch.get_or_insert_with(|| NodeWatch::of(nodes.clone(), &node)).next().await;
                }
                result => return Ok(result),
            }
        }
    });
    match (given_back.await, waiting) {
        (Err(Failure::Kubernetes { error: ApiError::TimeUp, .. }), Some((node, why))) => {
            Err(Failure::NotBack { node, why: why.to_string() })
        }
        (given_back, _) => given_back,
    }
}
