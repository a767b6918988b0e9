//! Facts: a line of the history each, and the input of the witnesses.

use std::fmt;
use std::time::Duration;

use serde_json::Value;

use crate::aws::ActionResult;
use crate::lambda::{AttemptId, Ending};
use crate::plan::{CLUSTERS, Cause, Command, NodeId};
use crate::witness::changes;

/// An event in the past. Those with `by` are requests of the function; `HookCompleted` and `LeaveRequested` may have no effect.
#[derive(Debug)]
pub(crate) enum Fact {
    PodCreated { name: String, uid: String },
    PodBound { uid: String, node: NodeId, app: usize },
    PodDeleted { uid: String, node: NodeId, grace_s: u64 },
    PodGone { uid: String, is_collected: bool },
    LeaveRequested { by: AttemptId, request: LeaveRequest },
    WriteArrives { by: AttemptId, cluster: usize },
    NodePatched { by: AttemptId, node: NodeId, before: Value, after: Value },
    NodeGone { node: NodeId },
    NodeMissed { node: NodeId },
    KubeletReports { node: NodeId },
    Person { command: Command, node: NodeId, instance: String },
    Interruption { instance: String, cause: Cause },
    InstanceState { instance: String, state: &'static str },
    HookCompleted { by: AttemptId, token: String, waits: bool },
    Replaced { by: AttemptId, instance: String, is_confirmed: bool, decrements: bool },
    ActionOver { token: String, instance: String, result: ActionResult },
    ScheduleFired { name: String },
    AttemptBegan { id: AttemptId, request: String, event: Value },
    ReceiptWritten { by: AttemptId, receipt: Value },
    AttemptEnded { id: AttemptId, ending: Ending },
    GivenUp { request: String },
    Quiet { after: Duration },
}

/// Call that requests a pod to leave.
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
            Self::Person { command, node, .. } => write!(f, "a person does {command:?} with {node}"),
            Self::Interruption { instance, cause } => write!(f, "{cause:?} of {instance}"),
            Self::InstanceState { instance, state } => write!(f, "instance {instance} is {state}"),
            Self::HookCompleted { by, token, .. } => write!(f, "  {by}   completes {token}"),
            Self::Replaced { instance, .. } => write!(f, "Replaces {instance}"),
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
