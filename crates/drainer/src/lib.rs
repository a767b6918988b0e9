//! Library of the drain function: receives a notice, drains the node, and writes a receipt.
//!
//! # Layout
//! Read `handler` first. Decisions are in `spillway-core`, in modules with the same names as here. A module imports only modules
//! before it in this list: `invocation`, `aws`, `kube`, `node`, `failure`, `drain`, `later`, `receipt`, `context`, `publish`,
//! `actions`, `handler`.
//!
//! # Public items
//! The function uses `Context` and `handle`. The doctor (`crates/doctor`) uses the clients of `Context`, `aws`, `kube`, and the
//! dry runs `rehearse` and `preview_pod`.

mod actions;
pub mod aws;
mod context;
#[cfg(any(test, feature = "test-support"))]
pub mod doubles;
mod drain;
mod failure;
mod handler;
mod invocation;
pub mod kube;
mod later;
mod node;
mod publish;
mod receipt;
#[cfg(test)]
mod test_support;

pub use context::Context;
pub use context::cluster::Access;
pub use context::log::Log;
pub use drain::dry_run::preview_pod;
pub use failure::Failure;
pub use handler::handle;
pub use node::{Rehearsed, rehearse};
