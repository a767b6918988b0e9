//! Requests to pods to leave, by eviction or deletion, and their limits.

use std::time::Duration;

use super::deadline::Grace;
use super::plan::{PodName, PodUid};

/// Maximum number of evictions under way at once. An API server allows 100 streams on an HTTP/2 connection (kubernetes,
/// `secure_serving.go`). A test in the drainer's `drain/mod.rs` adds up the other streams of a drain. Further evictions wait for
/// the first answers, which take 80 to 240 ms for 110 evictions at once.
pub const EVICTIONS_AT_ONCE: usize = 72;
/// Maximum number of forced deletions under way at once. The places are reserved for deletions, so that a deletion never waits
/// for an eviction.
pub const DELETIONS_AT_ONCE: usize = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Eviction through the eviction API, which respects PDBs.
    Evict,
    /// Deletion, which ignores PDBs.
    Delete,
}

impl Method {
    /// Returns `true` if blockers are ignored.
    pub fn is_forced(self) -> bool {
        self == Self::Delete
    }
}

/// Request to a pod to leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaveRequest {
    pub uid: PodUid,
    pub name: PodName,
    pub method: Method,
    pub grace: Grace,
    /// Timeout of the request; `None`: the usual timeout of a call.
    pub timeout: Option<Duration>,
}
