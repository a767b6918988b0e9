//! Uncordons a node that is Ready again, and removes Spillway's taint, labels and annotation.

use std::time::Duration;

use kube::Api;
use spillway_core::cluster::ClusterName;
use spillway_core::decision::Reason;
use spillway_core::instance::Instance;
use spillway_core::node::uncordon::{UncordonCause, UncordonResult};
use spillway_retry::Transient as _;
use tokio::time::Instant;

use crate::context::{Context, RetryPolicy};
use crate::failure::Failure;
use crate::kube::ApiError;
use crate::node::NodeWatch;
use crate::node::uncordon::{Undo, uncordon};

/// Maximum time to connect to a cluster. The time is enough for three attempts.
const REACHED_WITHIN: Duration = Duration::from_secs(15);

#[derive(Debug, Clone, Copy)]
pub(super) struct UncordonDeadlines {
    /// Deadline for the API server's first answer.
    pub(super) connect_by: Instant,
    /// Deadline for the node to become Ready. If `None`, there is no wait for the node.
    pub(super) ready_by: Option<Instant>,
}

/// Returns the deadline for the API server's first answer: [`REACHED_WITHIN`] from now, but not after `end`.
pub(super) fn connect_deadline(end: Instant) -> Instant {
    end.min(Instant::now() + REACHED_WITHIN)
}

#[derive(Debug)]
pub(super) enum NotGivenBack {
    /// The cluster does not exist, or denies access.
    NotOurCluster { reason: Reason, failure: Failure },
    /// The API server did not answer, or answered with a transient error.
    NotReached(Failure),
    /// Any other failure.
    Failed(Failure),
}

impl NotGivenBack {
    /// Classifies the failure. `has_read` is `true` if the API server has already answered a read of the node.
    fn of(failure: Failure, cluster: &ClusterName, has_read: bool) -> Self {
        let code = match &failure {
            Failure::UnknownCluster { .. } => {
                return Self::NotOurCluster { reason: Reason::UnknownCluster(cluster.clone()), failure };
            }
            Failure::Kubernetes { error, .. } => error.code(),
            _ => return Self::Failed(failure),
        };
        match code {
            Some(code @ (401 | 403)) if !has_read => {
                Self::NotOurCluster { reason: Reason::AccessDenied { cluster: cluster.clone(), code }, failure }
            }
            _ if failure.is_transient() => Self::NotReached(failure),
            _ => Self::Failed(failure),
        }
    }
}

impl From<NotGivenBack> for Failure {
    fn from(why: NotGivenBack) -> Self {
        match why {
            NotGivenBack::NotOurCluster { failure, .. }
            | NotGivenBack::NotReached(failure)
            | NotGivenBack::Failed(failure) => failure,
        }
    }
}

/// Uncordons the instance's node if Spillway claimed the node for `cause`.
pub(super) async fn give_back(
    context: &Context,
    cluster: &ClusterName,
    instance: &Instance,
    cause: &UncordonCause,
    deadlines: UncordonDeadlines,
) -> Result<UncordonResult, NotGivenBack> {
    let mut undo = Undo::default();
    let doing = format!("give back the node of instance {}", instance.id);
    let policy = RetryPolicy::Uncordon { end: deadlines.connect_by };
    let first_try =
        context.in_cluster(cluster, policy, &doing, async |client| uncordon(&client, instance, cause, &mut undo).await);
    let first_try = first_try.await.map_err(|failure| NotGivenBack::of(failure, cluster, undo.has_looked))?;
    let (mut node, mut why, ready_by) = match (first_try, deadlines.ready_by) {
        (UncordonResult::NotReadyYet { node, why }, Some(ready_by)) => (node, why, ready_by),
        (result, _) => return Ok(result),
    };
    let given_back = context.in_cluster(cluster, ready_by, &doing, async |client| {
        let mut watch = NodeWatch::of(Api::all(client.clone()), &node);
        loop {
            watch.next().await;
            match uncordon(&client, instance, cause, &mut undo).await? {
                UncordonResult::NotReadyYet { node: name, why: lacks } => (node, why) = (name, lacks),
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

    fn kind(failure: Failure, has_read: bool) -> String {
        match NotGivenBack::of(failure, &ClusterName::new("prod"), has_read) {
            NotGivenBack::NotOurCluster { reason: Reason::UnknownCluster(_), .. } => "unknown".to_owned(),
            NotGivenBack::NotOurCluster { reason: Reason::AccessDenied { code, .. }, .. } => {
                format!("denied with {code}")
            }
            NotGivenBack::NotOurCluster { reason, .. } => panic!("{reason}"),
            NotGivenBack::NotReached(_) => "not reached".to_owned(),
            NotGivenBack::Failed(_) => "failed".to_owned(),
        }
    }

    #[test]
    fn failure_to_give_back_depends_on_code_and_earlier_access() {
        let error = CallError::answered("eks:DescribeCluster", "ResourceNotFoundException", "why", None);
        let cluster = || ClusterName::new("prod");
        assert_eq!(kind(Failure::UnknownCluster { cluster: cluster(), why: error }, false), "unknown");
        for (code, before, after) in [
            (401, "denied with 401", "not reached"),
            (403, "denied with 403", "failed"),
            (503, "not reached", "not reached"),
            (400, "failed", "failed"),
        ] {
            for (has_read, expected) in [(false, before), (true, after)] {
                let error = ApiError::Refused(Box::new(Status::failure("why", "Reason").with_code(code)));
                let failure = Failure::Kubernetes { doing: "look".to_owned(), cluster: cluster(), error };
                assert_eq!(kind(failure, has_read), expected, "{code}");
            }
        }
    }
}
