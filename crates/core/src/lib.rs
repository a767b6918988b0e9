//! Decisions about notices, nodes and pods: pure rules over plain data. No client, no SDK, no socket; of Tokio only `Instant`.
//!
//! The drain's library (`crates/drainer`) calls AWS and the cluster, and acts. Both sides use the same names: `drain/evict.rs`
//! there sends an eviction, `drain/answer.rs` here interprets the answer.

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
