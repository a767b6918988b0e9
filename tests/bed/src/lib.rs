//! The test bed: a real control plane, AWS by moto, and a Lambda Runtime API.
//!
//! # Layout
//! A test holds a [`World`]. Its processes belong to a supervisor, the `spillway-bed` program, which
//! outlives a test that panics and cleans up behind it.
//!
//! * what a test uses: [`world`], its [`cluster`]s, [`nodes`] with their [`kubelet`]s and [`pods`] on the Kubernetes
//!   side with their [`volumes`], [`aws`] for the cloud, [`life_like`] for a small cluster with something of everything, [`filler`] for a
//!   large one, [`karpenter`], [`watch`] to wait;
//! * what messages about drains go to: the [`announcer`] behind its queue, a [`webhook`], a [`forward_proxy`];
//! * the function under test: [`lambda`] drives it, [`proxy`] stands between it and the API server and
//!   carries bytes, [`gateway`] carries requests and lets some go wrong, [`faults`] lists what can go wrong with which,
//!   [`audit`] counts what it asked;
//! * what it costs: [`load`] counts a drain in a small cluster and in a large one, [`usage`] reads what a process has used;
//! * what the supervisor is made of: [`supervisor`], which reads like the start of a world, above
//!   `control_plane`, `cloud`, [`certs`], `processes`, [`setup`]; [`guard`] ties a process to its parent.
//!
//! What measures with it is in `bench/`, what shows it to a person in `demo/`.

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
pub mod forward_proxy;
pub mod gateway;
pub mod guard;
mod http_client;
pub mod karpenter;
mod kubeconfig;
pub mod kubelet;
pub mod lambda;
mod layout;
pub mod life_like;
pub mod load;
pub mod nodes;
pub mod pods;
mod processes;
pub mod proxy;
pub mod setup;
pub mod supervisor;
mod tls_listener;
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
