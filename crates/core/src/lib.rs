//! Decisions about notices, nodes and pods, as pure functions without calls to AWS or Kubernetes.
//!
//! `crates/drainer` makes the calls, and passes the responses to this crate.

pub mod clock;
pub mod cluster;
pub mod continuation;
pub mod decision;
pub mod drain;
pub mod hook_timeouts;
pub mod instance;
pub mod invocation;
pub mod kube;
pub mod node;
pub mod outcome;
pub mod replacement;
#[cfg(any(test, feature = "test-support"))]
pub mod test_support;
