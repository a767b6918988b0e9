//! Decisions of the drain: pure rules over plain data. No client, no SDK, no socket; of Tokio only the instant.
//!
//! The drain's library (`crates/drainer`) calls AWS and the cluster, and acts. Both sides use the same names: `drain/evict.rs`
//! there sends an eviction, `drain/answer.rs` here interprets the answer.
//!
//! # Layout
//! * `cluster`, `instance`: names and plain data of AWS
//! * `clock`, `invocation`: wall-clock time and Tokio's; time limits within an invocation
//! * `decision`: action for a notice, or the reason for none
//! * `kube`: the fields that are read of Kubernetes' objects, and its refusals
//! * `node`: claim, cordon and uncordon of a node
//! * `drain`: pods that leave, their deadlines and their results
//! * `hook_timeouts`: Auto Scaling's timeouts
//! * `continuation`: limits of a notice over all invocations
//! * `replacement`: conditions for another instance of the Auto Scaling group at the notice
//! * `outcome`: result of an action, and its sentence

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
