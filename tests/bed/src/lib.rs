//! The test bed: a real control plane, AWS by moto, and a Lambda Runtime API.
//!
//! # Layout
//! * a [`World`] and its [`cluster`]s: `layout`, `processes`, [`setup`], `control_plane`, [`certs`] and `cloud` start it; a
//!   [`leash`] cleans up after a test that is killed;
//! * Kubernetes: [`nodes`] with their [`kubelet`]s, [`pods`], [`volumes`], [`karpenter`], [`watch`] to wait; [`life_like`]
//!   fills a small cluster, [`filler`] a large one;
//! * AWS: [`aws`];
//! * the function under test: [`lambda`] runs it, [`proxy`] carries its connections and [`gateway`] its requests, [`faults`]
//!   lists what can go wrong with them, [`audit`] reads them from the API server's log, [`usage`] reads what a process used;
//! * messages about drains: the [`announcer`] behind its queue, a [`webhook`].

pub mod announcer;
pub mod audit;
pub mod aws;
pub mod certs;
mod cloud;
pub mod cluster;
mod control_plane;
mod error;
pub mod faults;
pub mod filler;
pub mod gateway;
mod http_client;
pub mod karpenter;
mod kubeconfig;
pub mod kubelet;
pub mod lambda;
mod layout;
pub mod leash;
pub mod life_like;
pub mod nodes;
pub mod pods;
mod processes;
pub mod proxy;
pub mod setup;
mod tls;
pub mod usage;
pub mod volumes;
pub mod watch;
pub mod webhook;
pub mod world;

pub use announcer::Announcer;
pub use aws::Aws;
pub use cluster::Cluster;
pub use error::BedError;
pub use nodes::{NodeOptions, TestNode};
pub use webhook::Webhook;
pub use world::{World, WorldOptions};
