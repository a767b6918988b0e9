//! What has happened: a line of the history each, and what witnesses see.

use std::fmt;
use std::time::Duration;

use serde_json::Value;

use crate::aws::ActionResult;
use crate::lambda::{AttemptId, Ending};
use crate::plan::{CLUSTERS, Cause, Command, NodeId};
use crate::witness::changes;

/// Something that has happened.
#[derive(Debug)]
pub(crate) enum Fact {
    /// A pod's object is made, on a node or on none.
    PodCreated {
        name: String,
        uid: String,
    },
    /// A pod comes to a node.
    PodBound {
        uid: String,
        node: NodeId,
        app: usize,
    },
    /// A pod begins to leave, or is to leave sooner.
    PodDeleted {
        uid: String,
        node: NodeId,
        grace_s: u64,
    },
    /// A pod's object is no more.
    PodGone {
        uid: String,
        /// By the garbage collector, while its containers may run.
        is_collected: bool,
    },
    /// The function requests that a pod leave.
    LeaveRequested {
        by: AttemptId,
        request: LeaveRequest,
    },
    /// A request of the function that is to change something arrives in a cluster.
    WriteArrives {
        by: AttemptId,
        cluster: usize,
    },
    /// The function patches a node.
    NodePatched {
        by: AttemptId,
        node: NodeId,
        before: Value,
        after: Value,
    },
    NodeGone {
        node: NodeId,
    },
    NodeMissed {
        node: NodeId,
    },
    KubeletReports {
        node: NodeId,
    },
    /// A person does something with a node.
    Person {
        command: Command,
        node: NodeId,
        instance: String,
    },
    Interruption {
        instance: String,
        cause: Cause,
    },
    InstanceState {
        instance: String,
        state: &'static str,
    },
    /// The function completes a lifecycle action, if it waits.
    HookCompleted {
        by: AttemptId,
        token: String,
        waits: bool,
    },
    ActionOver {
        token: String,
        instance: String,
        result: ActionResult,
    },
    ScheduleFired {
        name: String,
    },
    AttemptBegan {
        id: AttemptId,
        request: String,
        event: Value,
    },
    ReceiptWritten {
        by: AttemptId,
        receipt: Value,
    },
    AttemptEnded {
        id: AttemptId,
        ending: Ending,
    },
    /// An event was tried for the last time.
    GivenUp {
        request: String,
    },
    /// Nothing more will happen.
    Quiet {
        after: Duration,
    },
}

/// By which call a pod is requested to leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    Evict,
    Delete,
}

/// A request that a pod leave.
#[derive(Debug)]
pub(crate) struct LeaveRequest {
    pub(crate) name: String,
    pub(crate) uid: Option<String>,
    pub(crate) grace_s: Option<u64>,
    pub(crate) method: Method,
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PodCreated { name, uid } => write!(f, "pod {name} ({uid}) is created"),
            Self::PodBound { uid, node, app } => write!(f, "pod {uid} of app {app} is bound to {node}"),
            Self::PodDeleted { uid, node, grace_s } => write!(f, "pod {uid} leaves {node} within {grace_s} s"),
            Self::PodGone { uid, is_collected: true } => write!(f, "pod {uid} is collected"),
            Self::PodGone { uid, is_collected: false } => write!(f, "pod {uid} is gone"),
            Self::LeaveRequested { by, request } => {
                write!(f, "  {by}   is about to {:?} {}", request.method, request.name)
            }
            Self::WriteArrives { by, cluster } => write!(f, "  {by}   writes to {}", CLUSTERS[*cluster]),
            Self::NodePatched { by, node, before, after } => {
                write!(f, "  {by}   patches node {node}: {}", changes(before, after).join(", "))
            }
            Self::NodeGone { node } => write!(f, "node {node} leaves the cluster"),
            Self::NodeMissed { node } => write!(f, "node {node} is missed"),
            Self::KubeletReports { node } => write!(f, "the kubelet of {node} is back"),
            Self::Person { command, node, .. } => write!(f, "somebody does {command:?} with {node}"),
            Self::Interruption { instance, cause } => write!(f, "{cause:?} of {instance}"),
            Self::InstanceState { instance, state } => write!(f, "instance {instance} is {state}"),
            Self::HookCompleted { by, token, .. } => write!(f, "  {by}   completes {token}"),
            Self::ActionOver { token, instance, result } => {
                write!(f, "the lifecycle action {token} of {instance} is over: {result:?}")
            }
            Self::ScheduleFired { name } => write!(f, "schedule {name} fires"),
            Self::AttemptBegan { id, request, event } => write!(f, "{id} begins, {request}: {event}"),
            Self::ReceiptWritten { by, receipt } => write!(f, "  {by} writes {receipt}"),
            Self::AttemptEnded { id, ending } => write!(f, "{id} {ending}"),
            Self::GivenUp { request } => write!(f, "{request} is given up"),
            Self::Quiet { after } => write!(f, "all is quiet after {} s", after.as_secs()),
        }
    }
}
