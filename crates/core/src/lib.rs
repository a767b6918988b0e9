//! What the drain decides: pure rules over plain data. No client, no SDK, no socket; of Tokio only the instant.
//!
//! The drain's library (`crates/drainer`) asks, and does what is decided. The same names stand on both sides: how a pod is
//! requested to leave is `drain/evict.rs` there, what the answer means is `drain/answer.rs` here.
//!
//! # Layout
//! * `cluster`, `instance`: names and plain data of AWS
//! * `clock`, `invocation`: wall-clock time and Tokio's; what has to be done in an invocation by when
//! * `decision`: what is to be done about a notice, or why nothing is
//! * `kube`: what is read of Kubernetes' objects, and what its refusals mean
//! * `node`: what a claim finds and writes, and when a node is given back
//! * `drain`: which pods leave, how and when, and what became of each
//! * `hook_timeouts`: how long Auto Scaling waits
//! * `continuation`: until when a notice is worked on, in however many invocations
//! * `outcome`: what an action came to, and its sentence

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
#[cfg(any(test, feature = "test-support"))]
pub mod test_support;
