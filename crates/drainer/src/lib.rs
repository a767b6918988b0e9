//! Drain function: receives a notice, drains the node, writes a receipt.
//!
//! # Layout
//! Read `handler` first. `spillway-notice` reads notices, and `spillway-settings` reads settings. `spillway-core` decides; its
//! modules have the names of this crate's. The modules of this crate from the lowest to the highest; none imports a later one:
//! `invocation`, `aws`, `kube`, `node`, `failure`, `drain`, `later`, `receipt`, `context`, `publish`, `actions`, `handler`.
//!
//! # What is public
//! For the function: `Context`, made once, and `handle`. For the doctor (`crates/doctor`): the context's clients, `aws`, `kube`, and
//! the dry runs `rehearse` and `preview_pod`.

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
