//! Failures of an invocation, which Lambda retries before it moves the event to the failure queue.

use std::error::Error;

use jiff::Timestamp;
use lambda_runtime::Diagnostic;
use spillway_core::cluster::ClusterName;
use spillway_core::continuation::limits::Unfinished;
use spillway_core::decision::Refusal;
use spillway_core::node::readiness::Readiness;
use spillway_notice::NoticeError;
use spillway_retry::Transient;
use spillway_settings::SettingsError;
use spillway_startup::logs::chain;

use crate::aws::{CallError, CallErrorKind};
use crate::kube::ApiError;
use crate::node::node_claim::NODE_CLAIMS;

pub(crate) const DESCRIBE_CLUSTER: &str = "eks:DescribeCluster";

/// Failure to handle a notice. Its text is in the failure queue, the log and the receipt.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("the settings are wrong: {0}")]
    Settings(SettingsError),
    #[error(transparent)]
    Notice(#[from] NoticeError),
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Aws(#[from] CallError),
    /// The instance's tags name a cluster that is not in EKS, such as a `kOps` cluster.
    #[error("EKS has no cluster {cluster} in this account and Region, though the tags of the instance name it")]
    UnknownCluster {
        cluster: ClusterName,
        #[source]
        why: CallError,
    },
    /// The cluster cannot be used, for example because EKS' description is incomplete.
    #[error("cannot use cluster {cluster}")]
    Cluster {
        cluster: ClusterName,
        #[source]
        why: Box<dyn Error + Send + Sync>,
    },
    /// The API server refused the request or was unreachable.
    #[error("cannot {doing} in cluster {cluster}")]
    Kubernetes {
        doing: String,
        cluster: ClusterName,
        #[source]
        error: ApiError,
    },
    /// The notice was handled after its deadline, and the node has left the cluster.
    #[error("the notice came too late: instance {instance} was to go at {deadline}, and its node has left the cluster")]
    TooLate { instance: String, deadline: Timestamp },
    /// A schedule is needed, but the function was deployed without a schedule group.
    #[error(
        "cannot schedule a later invocation: the setting SPILLWAY_SCHEDULES is missing (docs/troubleshooting.md, NoSchedules)"
    )]
    NoSchedules,
    #[error("node {node} is still cordoned by Spillway, because {why}; fix the node, then run kubectl uncordon {node}")]
    NotBack { node: String, why: String },
    /// The drain's time was up before all pods had left the node.
    #[error("{} still on node {node} when the time was up", pods_were(*lost, *all))]
    PodsLost { node: String, lost: usize, all: usize },
    /// The drain's time was up before volumes and load balancers had released the instance.
    #[error("node {node} is empty, but volumes or load balancers may still be attached to its instance")]
    StillHeld { node: String },
    /// The drain's time was up before all pods had left the node. The Auto Scaling group keeps the instance.
    #[error(
        "{} still on node {node} when the time was up ({what_blocks}); its group keeps instance {instance}, and no pod was \
         forced. When the pods have left, terminate it: aws autoscaling terminate-instance-in-auto-scaling-group --instance-id \
         {instance} --no-should-decrement-desired-capacity --region {region}",
        pods_were(*left, *all)
    )]
    InstanceKept { node: String, left: usize, all: usize, what_blocks: String, instance: String, region: String },
    /// The launched instance did not become a Ready node.
    #[error("instance {instance} is not ready for the pods of cluster {cluster}: {readiness}")]
    NotReady { instance: String, cluster: ClusterName, readiness: Readiness },
}

impl Failure {
    /// Returns the text of the failure and its sources, with advice if access was denied.
    pub fn text(&self) -> String {
        format!("{}{}", chain(self), self.advice())
    }

    fn advice(&self) -> &'static str {
        let Self::Kubernetes { error, .. } = self else { return "" };
        match error.code() {
            Some(401) => {
                "; the cluster does not know the function's role: give it an access entry (see docs/install.md)"
            }
            Some(403) if error.is_of_resource(NODE_CLAIMS) => {
                "; the function's group lacks a permission: apply deploy/optional/karpenter.yaml"
            }
            Some(403) if !error.is_of_admission() => {
                "; the function's group lacks a permission: apply deploy/rbac.yaml"
            }
            _ => "",
        }
    }

    /// Returns the stable name of the failure for alarms and the failure queue.
    pub(crate) fn error_type(&self) -> &'static str {
        match self {
            Self::Settings(_) => "WrongSettings",
            Self::Notice(NoticeError::Foreign { .. }) => "ForeignNotice",
            Self::Notice(NoticeError::NotAnEvent(_)) => "NotAnEvent",
            Self::Notice(_) => "UnreadableNotice",
            Self::Refused(_) => "AmbiguousInstance",
            Self::Aws(error) => match error.kind {
                CallErrorKind::Denied => "AwsDenied",
                CallErrorKind::Throttled => "AwsThrottled",
                CallErrorKind::Unreachable => "AwsUnreachable",
                CallErrorKind::Broken => "AwsBroken",
                CallErrorKind::Refused => "AwsRefused",
            },
            Self::UnknownCluster { .. } => "ClusterUnknown",
            Self::Cluster { .. } => "UnusableCluster",
            Self::Kubernetes { error, .. } => match error.code() {
                Some(401 | 403) => "KubernetesDenied",
                Some(_) => "KubernetesRefused",
                None => "KubernetesUnreachable",
            },
            Self::TooLate { .. } => "TooLate",
            Self::NoSchedules => "NoSchedules",
            Self::NotBack { .. } => "NotBack",
            Self::PodsLost { .. } => "PodsLost",
            Self::StillHeld { .. } => "StillHeld",
            Self::InstanceKept { .. } => "InstanceKept",
            Self::NotReady { .. } => "NodeNotReady",
        }
    }

    /// Returns the work that a later invocation may finish. `None` if a later invocation cannot help.
    pub(crate) fn unfinished(&self) -> Option<Unfinished> {
        match self {
            Self::Aws(error) => error.is_transient().then_some(Unfinished::Call),
            // A 401 after all retries means a missing access entry, not a busy authenticator.
            Self::Kubernetes { error, .. } => {
                (error.is_transient() && error.code() != Some(401)).then_some(Unfinished::Call)
            }
            Self::NotBack { .. } => Some(Unfinished::Call),
            Self::PodsLost { .. } | Self::StillHeld { .. } | Self::NotReady { .. } => Some(Unfinished::Node),
            Self::Settings(_)
            | Self::Notice(_)
            | Self::Refused(_)
            | Self::UnknownCluster { .. }
            | Self::Cluster { .. }
            | Self::TooLate { .. }
            | Self::InstanceKept { .. }
            | Self::NoSchedules => None,
        }
    }

    /// Returns `true` if Spillway cannot reach the node until people grant access or fix the tags.
    pub(crate) fn is_access_denied(&self) -> bool {
        match self {
            Self::Refused(Refusal::SeveralClusters { .. }) | Self::UnknownCluster { .. } => true,
            Self::Aws(error) => {
                error.action == DESCRIBE_CLUSTER && matches!(error.kind, CallErrorKind::Denied | CallErrorKind::Refused)
            }
            Self::Kubernetes { .. } => self.denied_code().is_some(),
            _ => false,
        }
    }

    /// Returns 401 or 403 if the API server denied access, else `None`.
    pub(crate) fn denied_code(&self) -> Option<u16> {
        match self {
            Self::Kubernetes { error, .. } => error.code().filter(|code| matches!(code, 401 | 403)),
            _ => None,
        }
    }
}

/// Returns the beginning of a sentence about pods, such as "2 of 6 pods were".
fn pods_were(lost: usize, all: usize) -> String {
    match (lost, all) {
        (1, 1) => "the one pod that had to leave was".to_owned(),
        (1, all) => format!("1 of {all} pods was"),
        (lost, all) => format!("{lost} of {all} pods were"),
    }
}

/// Treats failures of AWS calls as final, because AWS calls were already retried.
impl Transient for Failure {
    fn is_transient(&self) -> bool {
        matches!(self, Self::Kubernetes { error, .. } if error.is_transient())
    }
}

impl From<Failure> for Diagnostic {
    fn from(failure: Failure) -> Self {
        Self { error_type: failure.error_type().to_owned(), error_message: failure.text() }
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;
    use spillway_core::test_support::instance_id;

    use super::*;

    fn call(action: &'static str, kind: CallErrorKind) -> Failure {
        let code = match kind {
            CallErrorKind::Denied => "AccessDenied",
            CallErrorKind::Throttled => "Throttling",
            CallErrorKind::Unreachable => return CallError::unanswered(action, "why").into(),
            CallErrorKind::Broken => "InternalFailure",
            CallErrorKind::Refused => "ValidationError",
        };
        CallError::answered(action, code, "why", None).into()
    }

    fn api_server(code: u16) -> Failure {
        let error = ApiError::Refused(Box::new(Status::failure("why", "Reason").with_code(code)));
        Failure::Kubernetes { doing: "cordon".to_owned(), cluster: ClusterName::new("prod"), error }
    }

    /// Failures of each kind, with the searched part of their sentences.
    fn failures() -> Vec<(Failure, &'static str)> {
        let node = || "n-1".to_owned();
        let instance = || "i-1".to_owned();
        let cluster = || ClusterName::new("prod");
        let wrong = spillway_settings::Settings::from_variables(
            [("SPILLWAY_DRAIN_ON".to_owned(), "sport".to_owned())].into_iter(),
        );
        let unknown = CallError::answered(DESCRIBE_CLUSTER, "ResourceNotFoundException", "why", None);
        let clusters = vec!["a".to_owned(), "b".to_owned()];
        let kept = Failure::InstanceKept {
            node: node(),
            left: 1,
            all: 2,
            what_blocks: "why".to_owned(),
            instance: instance(),
            region: "us-east-1".to_owned(),
        };
        vec![
            (Failure::Settings(wrong.wrong.unwrap()), "the settings are wrong"),
            (Failure::Refused(Refusal::SeveralClusters { instance: instance_id(), clusters }), "name several clusters"),
            (call("ec2:DescribeInstances", CallErrorKind::Denied), "is denied"),
            (call("ec2:DescribeInstances", CallErrorKind::Throttled), "is throttled"),
            (call("ec2:DescribeInstances", CallErrorKind::Unreachable), "got no answer"),
            (call("ec2:DescribeInstances", CallErrorKind::Broken), "fails at AWS' end"),
            (call("ec2:DescribeInstances", CallErrorKind::Refused), "is refused"),
            (Failure::UnknownCluster { cluster: cluster(), why: unknown }, "though the tags of the instance name it"),
            (Failure::Cluster { cluster: cluster(), why: "why".into() }, "cannot use cluster"),
            (api_server(403), "the API server answered"),
            (api_server(409), "the API server answered"),
            (
                Failure::Kubernetes { doing: "cordon".to_owned(), cluster: cluster(), error: ApiError::TimeUp },
                "the API server did not answer",
            ),
            (Failure::TooLate { instance: instance(), deadline: Timestamp::UNIX_EPOCH }, "the notice came too late"),
            (Failure::NoSchedules, "cannot schedule a later invocation"),
            (Failure::NotBack { node: node(), why: "why".to_owned() }, "is still cordoned by Spillway"),
            (Failure::PodsLost { node: node(), lost: 1, all: 2 }, "when the time was up"),
            (Failure::StillHeld { node: node() }, "volumes or load balancers may still be attached to its instance"),
            (kept, "its group keeps instance"),
            (
                Failure::NotReady { instance: instance(), cluster: cluster(), readiness: Readiness::NotJoined },
                "is not ready for the pods of cluster",
            ),
        ]
    }

    #[test]
    fn troubleshooting_has_each_error_type_and_sentence() {
        let page = include_str!("../../../docs/troubleshooting.md");
        let (_, section) = page.split_once("## By error type\n").expect("a section");
        let section = section.split("\n## ").next().expect("the section").replace('\n', " ");
        for (failure, sentence) in failures() {
            assert!(failure.text().contains(sentence), "{sentence}: {}", failure.text());
            assert!(section.contains(failure.error_type()), "{}", failure.error_type());
            assert!(section.contains(sentence), "{sentence}");
        }
    }

    #[test]
    fn denials_and_unknown_clusters_mean_no_access() {
        for kind in [CallErrorKind::Denied, CallErrorKind::Refused] {
            assert!(call(DESCRIBE_CLUSTER, kind).is_access_denied(), "{kind:?}");
            assert!(!call("ec2:DescribeInstances", kind).is_access_denied(), "{kind:?}");
        }
        for kind in [CallErrorKind::Throttled, CallErrorKind::Unreachable, CallErrorKind::Broken] {
            assert!(!call(DESCRIBE_CLUSTER, kind).is_access_denied(), "{kind:?}");
        }
        assert!(api_server(401).is_access_denied() && api_server(403).is_access_denied());
        assert!(!api_server(503).is_access_denied() && !api_server(404).is_access_denied());
        let clusters = vec!["a".to_owned(), "b".to_owned()];
        assert!(Failure::Refused(Refusal::SeveralClusters { instance: instance_id(), clusters }).is_access_denied());
    }
}
