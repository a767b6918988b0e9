//! Drain function: receives a notice, drains the node, writes a receipt.
//!
//! # Layout
//! Read `handler` first. `spillway-notice` reads notices, `spillway-settings` reads settings, and `spillway-core` decides, in
//! modules with the same names. Modules from the ground up; none imports a later one:
//! * `invocation`: log span of an invocation
//! * `aws`: EC2, Auto Scaling's lifecycle hooks, load balancers, the event bus, Lambda
//! * `kube`: calls to the API server, lists, watches
//! * `node`: lookup, claim, watch and uncordon of a node
//! * `failure`: failures of an invocation
//! * `drain`: plan, evict, watch
//! * `later`: continuation in a later invocation
//! * `receipt`: record of the work on a notice
//! * `context`: clients, and the subject of a notice
//! * `publish`: log, metrics and events of a receipt
//! * `actions`: one file for each action
//! * `handler`: story of a notice
//! * `doubles`: test doubles of AWS and the API server
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
