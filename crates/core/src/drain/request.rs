//! Requests to pods to leave: by eviction or deletion, and their limits.

use std::time::Duration;

use super::deadline::Grace;
use super::plan::{PodName, PodUid};

/// Most evictions under way at once. An API server allows 100 streams on an HTTP/2 connection (kubernetes, `secure_serving.go`);
/// `drain/mod.rs` of the drainer adds up the other streams of a drain. The other pods wait for the first answers: of 110 that left
/// a node at once those came after 80 to 240 ms.
pub const EVICTIONS_AT_ONCE: usize = 72;
/// Most forced requests under way at once, beside the evictions: a pod's deletion never waits for an eviction.
pub const DELETIONS_AT_ONCE: usize = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Through the eviction API, which respects PodDisruptionBudgets.
    Evict,
    /// A deletion, without regard to budgets.
    Delete,
}

impl Method {
    /// Returns `true` if blockers are ignored.
    pub fn is_forced(self) -> bool {
        self == Self::Delete
    }
}

/// A pod to be requested to leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaveRequest {
    pub uid: PodUid,
    pub name: PodName,
    pub method: Method,
    pub grace: Grace,
    /// Timeout of the request, if shorter than that of any call.
    pub timeout: Option<Duration>,
}
