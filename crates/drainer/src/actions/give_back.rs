//! Giving a node back: what was put on it is taken off, as soon as it is Ready.

use std::time::Duration;

use kube::Api;
use spillway_core::cluster::ClusterName;
use spillway_core::decision::Reason;
use spillway_core::instance::Instance;
use spillway_core::node::uncordon::{UncordonCause, UncordonResult};
use spillway_retry::Transient as _;
use tokio::time::Instant;

use crate::context::{Context, Patience};
use crate::failure::Failure;
use crate::kube::ApiError;
use crate::node::NodeWatch;
use crate::node::uncordon::{Undo, uncordon};

/// How long a cluster is tried that gives no answer; then a schedule tries it again. Three attempts at a connection.
const REACHED_WITHIN: Duration = Duration::from_secs(15);

/// How long it is tried to give a node back.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patiently {
    /// Until when the cluster has to answer.
    pub(super) reached: Instant,
    /// Until when a node is waited for that is not Ready. `None`: that is the result.
    pub(super) ready: Option<Instant>,
}

/// Until when a cluster is tried in an invocation for which nobody waits, within its end.
pub(super) fn reached_by(end: Instant) -> Instant {
    end.min(Instant::now() + REACHED_WITHIN)
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

/// Takes what we put on the instance's node off it, if that was for what is over.
pub(super) async fn give_back(
    context: &Context,
    cluster: &ClusterName,
    instance: &Instance,
    cause: &UncordonCause,
    until: Patiently,
) -> Result<UncordonResult, NotGivenBack> {
    let mut undo = Undo::default();
    let doing = format!("give back the node of instance {}", instance.id);
    let patience = Patience::of_giving_back(until.reached);
    let at_once = context
        .in_cluster(cluster, patience, &doing, async |client| uncordon(&client, instance, cause, &mut undo).await);
    let at_once = at_once.await.map_err(|failure| NotGivenBack::of(failure, cluster, undo.has_looked))?;
    let (mut node, mut why, ready_by) = match (at_once, until.ready) {
        (UncordonResult::NotReadyYet { node, why }, Some(ready_by)) => (node, why, ready_by),
        (result, _) => return Ok(result),
    };
    let given_back = context.in_cluster(cluster, ready_by, &doing, async |client| {
        let mut watch = NodeWatch::of(Api::all(client.clone()), &node);
        loop {
            watch.next().await;
            match uncordon(&client, instance, cause, &mut undo).await? {
                UncordonResult::NotReadyYet { node: seen, why: lacks } => (node, why) = (seen, lacks),
                result => return Ok(result),
            }
        }
    });
    given_back.await.map_err(|failure| match failure {
        Failure::Kubernetes { error: ApiError::TimeUp, .. } => {
            NotGivenBack::Failed(Failure::NotBack { node, why: why.to_string() })
        }
        failure => NotGivenBack::Failed(failure),
    })
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;
    use crate::aws::CallError;

    fn why(failure: Failure, looked: bool) -> NotGivenBack {
        NotGivenBack::of(failure, &ClusterName::new("prod"), looked)
    }

    fn answered(code: u16) -> Failure {
        let error = ApiError::Refused(Box::new(Status::failure("why", "Reason").with_code(code)));
        Failure::Kubernetes { doing: "look".to_owned(), cluster: ClusterName::new("prod"), error }
    }

    #[test]
    fn a_cluster_that_is_none_of_ours_is_told_from_one_that_gives_no_answer_and_from_all_else() {
        let error = CallError::answered("eks:DescribeCluster", "ResourceNotFoundException", "why", None);
        let unknown = Failure::UnknownCluster { cluster: ClusterName::new("prod"), why: error };
        let not_ours = why(unknown, false);
        assert!(matches!(not_ours, NotGivenBack::NotLetIn { reason: Reason::UnknownCluster(_), .. }), "{not_ours:?}");
        for denied in [401, 403] {
            let not_ours = why(answered(denied), false);
            let reason = Reason::NotLetIn { cluster: ClusterName::new("prod"), code: denied };
            assert!(matches!(&not_ours, NotGivenBack::NotLetIn { reason: r, .. } if *r == reason), "{not_ours:?}");
        }
        for looked in [false, true] {
            assert!(matches!(why(answered(503), looked), NotGivenBack::NotReached(_)));
            assert!(matches!(why(answered(400), looked), NotGivenBack::Failed(_)));
        }
        assert!(matches!(why(answered(403), true), NotGivenBack::Failed(_)), "a right is missing to change the node");
    }
}
