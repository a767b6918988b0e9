//! Giving a node back: when what it was taken out for is over, and as soon as it is Ready.

use std::time::Duration;

use kube::Api;
use spillway_core::cluster::ClusterName;
use spillway_core::decision::Reason;
use spillway_core::instance::{Instance, InstanceState};
use spillway_core::node::uncordon::{UncordonCause, UncordonResult};
use spillway_core::outcome::Outcome;
use spillway_notice::{Kind, Notice};
use tokio::time::Instant;

use super::undo_check;
use crate::context::{Context, Patience, Target};
use crate::continuation::schedule::{Deleted, Name};
use crate::failure::Failure;
use crate::invocation::retry::Transient as _;
use crate::kube::ApiError;
use crate::node::NodeWatch;
use crate::node::uncordon::{Undoing, uncordon as take_off};
use crate::receipt::record::Record;

/// How long a cluster is tried that gives no answer; then a schedule tries it again. Three attempts at a connection.
const REACHED_WITHIN: Duration = Duration::from_secs(15);

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
        (Kind::Running, _) => Some(UncordonCause::Stop { runs_since: notice.time }),
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
    // An action that waits is worth an invocation's time; else nobody waits.
    let reached_by = if attempt.action.is_some() { end } else { reached_by(end) };
    let result = match give_back(context, cluster, instance, &cause, (end, reached_by), NotReady::Wait).await {
        Ok(result) => result,
        Err(NotGivenBack::NotLetIn { reason, .. }) => return Ok(Outcome::Ignored(reason)),
        Err(NotGivenBack::NotReached(failure)) => {
            return undo_check::try_later(context, target, failure, record).await;
        }
        Err(NotGivenBack::Failed(failure)) => return Err(failure),
    };
    if let Some(node) = result.node() {
        record.found(node);
    }
    let (cluster, provider_id) = ((*cluster).clone(), instance.provider_id());
    Ok(Outcome::Uncordoned { result, cause, cluster, provider_id })
}

/// Why a node was not given back.
#[derive(Debug)]
pub(super) enum NotGivenBack {
    /// The cluster is none of ours, and for that reason.
    NotLetIn { reason: Reason, failure: Failure },
    /// It gave no answer.
    NotReached(Failure),
    /// All else.
    Failed(Failure),
}

impl NotGivenBack {
    /// What the failure means, by whether we had been let in to look.
    fn of(failure: Failure, cluster: &ClusterName, looked: bool) -> Self {
        let code = match &failure {
            Failure::UnknownCluster { .. } => {
                return Self::NotLetIn { reason: Reason::UnknownCluster(cluster.clone()), failure };
            }
            Failure::Kubernetes { error, .. } => error.code(),
            _ => return Self::Failed(failure),
        };
        match code {
            Some(code @ (401 | 403)) if !looked => {
                Self::NotLetIn { reason: Reason::NotLetIn { cluster: cluster.clone(), code }, failure }
            }
            _ if failure.is_transient() => Self::NotReached(failure),
            _ => Self::Failed(failure),
        }
    }
}

impl From<NotGivenBack> for Failure {
    fn from(why: NotGivenBack) -> Self {
        match why {
            NotGivenBack::NotLetIn { failure, .. }
            | NotGivenBack::NotReached(failure)
            | NotGivenBack::Failed(failure) => failure,
        }
    }
}

/// Until when a cluster is tried in an invocation for which nobody waits, within its end.
pub(super) fn reached_by(end: Instant) -> Instant {
    end.min(Instant::now() + REACHED_WITHIN)
}

/// Takes our marks off the instance's node, if they are there for what is over. The cluster has to answer by `reached_by`; a
/// node that is not Ready is waited for until `end`.
pub(super) async fn give_back(
    context: &Context,
    cluster: &ClusterName,
    instance: &Instance,
    cause: &UncordonCause,
    (end, reached_by): (Instant, Instant),
    not_ready: NotReady,
) -> Result<UncordonResult, NotGivenBack> {
    let undoing = Undoing::default();
    let doing = format!("give back the node of instance {}", instance.id);
    let patience = Patience::of_giving_back(reached_by);
    let at_once = context.in_cluster(cluster, patience, &doing, async |client| {
        take_off(&Api::all(client), instance, cause, &undoing).await
    });
    let mut waiting = match at_once.await {
        Ok(UncordonResult::NotReadyYet { node, why }) if not_ready == NotReady::Wait => (node, why),
        Ok(result) => return Ok(result),
        Err(failure) => return Err(NotGivenBack::of(failure, cluster, undoing.looked.get())),
    };
    let given_back = context.in_cluster(cluster, end, &doing, async |client| {
        let nodes = Api::all(client);
        let mut watch = NodeWatch::of(nodes.clone(), &waiting.0);
        loop {
            watch.next().await;
            match take_off(&nodes, instance, cause, &undoing).await? {
                UncordonResult::NotReadyYet { node, why } => waiting = (node, why),
                result => return Ok(result),
            }
        }
    });
    given_back.await.map_err(|failure| match failure {
        Failure::Kubernetes { error: ApiError::TimeUp, .. } => {
            let (node, why) = waiting;
            NotGivenBack::Failed(Failure::NotBack { node, why: why.to_string() })
        }
        failure => NotGivenBack::Failed(failure),
    })
}
