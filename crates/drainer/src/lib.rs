//! The drain function: a notice in, a drained node out.
//!
//! # Layout
//! Read `handler` first: it tells what happens to a notice, in order. What a notice says is read by the crate
//! `spillway-notice`, what was chosen by `spillway-settings`, and what is decided stands in `spillway-core`, by the same names.
//! The rooms, from the ground up; none imports a later one:
//! * `invocation`: whose its log lines are
//! * `aws`: EC2, Auto Scaling's lifecycle hooks, load balancers, the event bus, Lambda
//! * `kube`: calls to the API server, lists, watches
//! * `node`: find the node, claim it, watch it, uncordon it
//! * `failure`: what makes an invocation fail
//! * `drain`: plan, evict, watch
//! * `later`: continuing in a later invocation, or at a time
//! * `receipt`: what happened, as the one record of it
//! * `context`: the clients, and what one notice is about
//! * `publish`: the receipt's views: log, metrics, events
//! * `actions`: a file for each thing that may be done
//! * `handler`: the story
//! * `doubles`: the function over doubles of what it calls, for tests
//!
//! # What is public
//! For the function: `Context`, which is made once, and `handle`. For the doctor (`crates/doctor`), which makes the same calls:
//! the context's clients, `aws` and `kube`; and what can be asked without effect, `rehearse` and `preview_pod`.

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
