//! Defines the request that makes a pod leave: an eviction or a forced deletion. Limits the number of concurrent requests.

use std::time::Duration;

use super::deadline::Grace;
use super::plan::{PodName, PodUid};

/// Maximum number of concurrent evictions. An API server allows 100 streams on an HTTP/2 connection (kubernetes,
/// `secure_serving.go`), and deletions and watches need the rest.
pub const EVICTIONS_AT_ONCE: usize = 72;
/// Number of concurrent requests that are reserved for forced deletions, so that no deletion waits for an eviction.
pub const DELETIONS_AT_ONCE: usize = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Eviction, which respects PodDisruptionBudgets.
    Evict,
    /// Deletion, which ignores PodDisruptionBudgets.
    Delete,
}

impl Method {
    /// Returns `true` for a deletion.
    pub fn is_forced(self) -> bool {
        self == Self::Delete
    }
}

/// Request to the API server to evict or delete one pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaveRequest {
    pub uid: PodUid,
    pub name: PodName,
    pub method: Method,
    pub grace: Grace,
    /// Timeout of the request. `None`: the default timeout of the Kubernetes client.
    pub timeout: Option<Duration>,
}
