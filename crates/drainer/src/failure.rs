//! What makes an invocation fail, so that its event is kept: one variant for each thing that
//! somebody can do about it.

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

/// The call that says where a cluster is.
pub(crate) const DESCRIBE_CLUSTER: &str = "eks:DescribeCluster";

/// Why a notice failed. The texts are what the failure queue, the log and the receipt show.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The function acts on no notice before somebody has corrected its settings.
    #[error("the settings are wrong: {0}")]
    Settings(SettingsError),
    #[error(transparent)]
    Notice(#[from] NoticeError),
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Aws(#[from] CallError),
    /// The tags name a cluster that EKS does not have here: `kOps` and `OpenShift` use the same tag.
    #[error("EKS has no cluster {cluster} in this account and Region, though the tags of the instance name it")]
    UnknownCluster {
        cluster: ClusterName,
        #[source]
        why: CallError,
    },
    /// EKS told us of a cluster that cannot be connected to.
    #[error("cannot use cluster {cluster}")]
    Cluster {
        cluster: ClusterName,
        #[source]
        why: Box<dyn Error + Send + Sync>,
    },
    /// The API server refused or could not be reached.
    #[error("cannot {doing} in cluster {cluster}")]
    Kubernetes {
        doing: String,
        cluster: ClusterName,
        #[source]
        error: ApiError,
    },
    /// The notice came when the instance had gone.
    #[error("the notice came too late: instance {instance} was to go at {deadline}, and its node has left the cluster")]
    TooLate { instance: String, deadline: Timestamp },
    /// Something is to be done at a time, and the template did not say where such things are kept.
    #[error(
        "the setting SPILLWAY_SCHEDULES is missing, without which nothing can be done at a later time (docs/troubleshooting.md, NoSchedules)"
    )]
    NoSchedules,
    /// The node is not of use again, though it ought to be.
    #[error("node {node} stays cordoned and marked as ours, because {why}: see what keeps it, and uncordon it")]
    NotBack { node: String, why: String },
    /// The node is not empty.
    #[error("{} still on node {node} when the time was up", those_lost(*lost, *all))]
    PodsLost { node: String, lost: usize, all: usize },
    /// The node is empty, and this invocation is over before all has let go of it that its hook waits for.
    #[error("node {node} is empty, and volumes or load balancers may still have its instance")]
    StillHeld { node: String },
    /// The node is not empty, and its group keeps the instance.
    #[error(
        "{} still on node {node} when the time was up ({what_blocks}); its group keeps instance {instance}, and no pod was \
         forced. When the pods have left, end it: aws autoscaling terminate-instance-in-auto-scaling-group --instance-id \
         {instance} --no-should-decrement-desired-capacity --region {region}",
        those_lost(*left, *all)
    )]
    InstanceKept { node: String, left: usize, all: usize, what_blocks: String, instance: String, region: String },
    /// The instance was launched, and pods cannot come to it.
    #[error("instance {instance} is not ready for the pods of cluster {cluster}: {readiness}")]
    NotReady { instance: String, cluster: ClusterName, readiness: Readiness },
}

impl Failure {
    /// The failure with all its causes and what to do about it: for the receipt, the log and the failure queue.
    pub fn text(&self) -> String {
        format!("{}{}", chain(self), self.advice())
    }

    fn advice(&self) -> &'static str {
        let Self::Kubernetes { error, .. } = self else { return "" };
        match error.code() {
            Some(401) => {
                "; the cluster does not know the function's role: give it an access entry (see docs/install.md)"
            }
            Some(403) if chain(error).contains("nodeclaims") => {
                "; the function's group lacks a right: apply deploy/optional/karpenter.yaml"
            }
            Some(403) if !error.is_of_admission() => "; the function's group lacks a right: apply deploy/rbac.yaml",
            _ => "",
        }
    }

    /// A stable name, for alarms and for those who read the failure queue.
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

    /// What a later invocation might still do; `None`: somebody has to change something first. A 401 to the end is no busy
    /// authenticator: somebody has to let the function in.
    pub(crate) fn unfinished(&self) -> Option<Unfinished> {
        match self {
            Self::Aws(error) => error.is_transient().then_some(Unfinished::Call),
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

    /// Whether the instance's node cannot be got at until somebody lets us in, or says where it is.
    pub(crate) fn shuts_us_out(&self) -> bool {
        match self {
            Self::Refused(Refusal::SeveralClusters { .. }) | Self::UnknownCluster { .. } => true,
            Self::Aws(error) => {
                error.action == DESCRIBE_CLUSTER && matches!(error.kind, CallErrorKind::Denied | CallErrorKind::Refused)
            }
            Self::Kubernetes { .. } => self.not_let_in().is_some(),
            _ => false,
        }
    }

    /// The answer of a cluster that does not let us in: 401 or 403.
    pub(crate) fn not_let_in(&self) -> Option<u16> {
        match self {
            Self::Kubernetes { error, .. } => error.code().filter(|code| matches!(code, 401 | 403)),
            _ => None,
        }
    }
}

/// How many pods were lost, of how many that had to leave.
fn those_lost(lost: usize, all: usize) -> String {
    match (lost, all) {
        (1, 1) => "the one pod that had to leave was".to_owned(),
        (1, all) => format!("1 of {all} pods was"),
        (lost, all) => format!("{lost} of {all} pods were"),
    }
}

/// Within one call to a cluster: what its API server answers may pass, what leads to it was tried again where it failed.
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

    #[test]
    fn a_failure_is_told_with_its_cause_and_what_to_do() {
        let failure = api_server(403);
        assert_eq!(
            failure.text(),
            "cannot cordon in cluster prod: the API server answered 403 Reason: why; \
             the function's group lacks a right: apply deploy/rbac.yaml"
        );
        assert!(matches!(failure.source(), Some(source) if source.is::<ApiError>()));
    }

    /// One failure of each kind, with the part of its sentence that a reader searches for.
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
            (Failure::Refused(Refusal::SeveralClusters { instance: instance(), clusters }), "name several clusters"),
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
            (Failure::NoSchedules, "is missing, without which nothing can be done at a later time"),
            (Failure::NotBack { node: node(), why: "why".to_owned() }, "stays cordoned and marked as ours"),
            (Failure::PodsLost { node: node(), lost: 1, all: 2 }, "when the time was up"),
            (Failure::StillHeld { node: node() }, "volumes or load balancers may still have its instance"),
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
    fn only_who_is_denied_has_no_access() {
        for kind in [CallErrorKind::Denied, CallErrorKind::Refused] {
            assert!(call(DESCRIBE_CLUSTER, kind).shuts_us_out(), "{kind:?}");
            assert!(!call("ec2:DescribeInstances", kind).shuts_us_out(), "{kind:?}");
        }
        for kind in [CallErrorKind::Throttled, CallErrorKind::Unreachable, CallErrorKind::Broken] {
            assert!(!call(DESCRIBE_CLUSTER, kind).shuts_us_out(), "{kind:?}");
        }
        assert!(api_server(401).shuts_us_out() && api_server(403).shuts_us_out());
        assert!(!api_server(503).shuts_us_out() && !api_server(404).shuts_us_out());
        let clusters = vec!["a".to_owned(), "b".to_owned()];
        assert!(Failure::Refused(Refusal::SeveralClusters { instance: "i-1".to_owned(), clusters }).shuts_us_out());
    }
}
