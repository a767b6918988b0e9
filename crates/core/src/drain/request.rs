//! A request that one pod leave: by eviction or by deletion, and how many are made at once.

use std::time::Duration;

use super::deadline::Grace;
use super::plan::{PodName, PodUid};

/// How many evictions are under way at once. An API server allows 100 streams on an HTTP/2 connection (kubernetes,
/// `secure_serving.go`); what else a drain takes of them at once, `drain/mod.rs` adds up. The other pods wait for the first
/// answers: of 110 that left a node at once those came after 80 to 240 ms.
pub const EVICTIONS_AT_ONCE: usize = 72;
/// How many forced requests are under way at once, beside the evictions: one at its pod's last safe moment never waits for them.
pub const DELETIONS_AT_ONCE: usize = 10;

/// How a pod is requested to leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// By the eviction API, which respects PodDisruptionBudgets.
    Evict,
    /// By deleting it, past its budget.
    Delete,
}

impl Method {
    /// Whether what blocks the pod is not respected any longer.
    pub fn is_forced(self) -> bool {
        self == Self::Delete
    }
}

/// A pod to be requested to leave, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaveRequest {
    pub uid: PodUid,
    pub name: PodName,
    pub method: Method,
    pub grace: Grace,
    /// How long its answer is waited for, if that is less than for any call.
    pub patience: Option<Duration>,
}
