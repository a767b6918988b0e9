//! Giving a node back: when what it was taken out for is over, and as soon as it is Ready.

use std::time::Duration;

use kube::Api;
use spillway_eks::ClusterName;
use tokio::time::{Instant, sleep};

use super::cannot;
use crate::aws::instance::{Instance, InstanceState};
use crate::context::target::Attempt;
use crate::continuation::schedule::{Deleted, Name};
use crate::decision::Reason;
use crate::failure::Failure;
use crate::handler::Spillway;
use crate::kube::{ApiError, until};
use crate::node::uncordon::{UncordonCause, UncordonResult, undo};
use crate::notice::{Kind, Notice};
use crate::receipt::Receipt;
use crate::receipt::ending::{self, Outcome, ignored};

/// A kubelet that has started reports within ten seconds. To watch nodes would be a right more.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// What is done about a node that is not Ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    /// It is waited for.
    Wait,
    /// That is told.
    Look,
}

/// What is over, as the notice tells: maintenance that is still ahead was not for what was done before.
pub(super) fn over(notice: &Notice) -> Option<UncordonCause> {
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

impl Spillway {
    /// Something is over: what was scheduled for it is not done, and the node is given back.
    pub(crate) async fn undo(
        &self,
        attempt: &Attempt<'_>,
        instance: &Instance,
        cluster: ClusterName,
        receipt: &mut Receipt,
    ) -> Outcome {
        let Attempt { notice, .. } = attempt;
        let end = attempt.window(&self.settings).end;
        let deleted = match notice.kind {
            Kind::MaintenanceOver => self.scheduler.delete(&Name::of(notice), end).await?,
            _ => Deleted::No,
        };
        let undone = self.undo_claim(attempt, instance, cluster, end, receipt).await;
        match (undone, deleted) {
            (Ok(undone), Deleted::Yes) => Ok(ending::called_off(&notice.instance, undone)),
            (undone, _) => undone,
        }
    }

    async fn undo_claim(
        &self,
        attempt: &Attempt<'_>,
        instance: &Instance,
        cluster: ClusterName,
        end: Instant,
        receipt: &mut Receipt,
    ) -> Outcome {
        let Some(over) = over(attempt.notice) else {
            return Ok(ignored(&Reason::NothingToUndo(attempt.notice.kind.as_str())));
        };
        // When it runs again, that is another notice.
        if instance.state != InstanceState::Up {
            return Ok(ignored(&Reason::NotUp(instance.id.to_string())));
        }
        let undone = self.give_back(&cluster, instance, &over, end, Patience::Wait).await?;
        receipt.node = undone.node().map(str::to_owned);
        Ok(ending::undone(undone, &over, cluster, instance))
    }

    /// Connects, and takes our marks off the instance's node, if they are there for what is over. Tried until `end`.
    pub(super) async fn give_back(
        &self,
        cluster: &ClusterName,
        instance: &Instance,
        over: &UncordonCause,
        end: Instant,
        patience: Patience,
    ) -> Result<UncordonResult, Failure> {
        let tell = |error: &ApiError| {
            tracing::warn!(cluster.name = %cluster, error = %error, "cannot give the node back; trying again");
        };
        let mut waiting = None;
        let undone = until(
            end,
            async || {
                let connection = match self.access.connect(cluster, end).await {
                    Ok(connection) => connection,
                    Err(failure) => return Ok(Err(failure)),
                };
                let nodes = Api::all(connection.client);
                loop {
                    match undo(&nodes, instance, over).await? {
                        UncordonResult::NotReadyYet { node, why } if patience == Patience::Wait => {
                            waiting = Some((node, why))
                        }
                        undone => return Ok(Ok(undone)),
                    }
                    sleep(LOOK_EVERY).await;
                }
            },
            tell,
        );
        match (undone.await, waiting) {
            (Ok(undone), _) => undone,
            (Err(ApiError::TimeUp), Some((node, why))) => Err(Failure::NotBack { node, why: why.to_string() }),
            (Err(error), _) => Err(cannot(format!("give back the node of instance {}", instance.id), cluster, error)),
        }
    }
}
