//! The test bed: a real control plane, AWS by moto, and a Lambda Runtime API.
//!
//! # Layout
//! A test holds a [`World`]. Its processes belong to a supervisor, the `spillway-bed` program, which
//! outlives a test that panics and cleans up behind it.
//!
//! * what a test uses: [`world`], its [`cluster`]s, [`nodes`] with their [`kubelet`]s and [`pods`] on the Kubernetes
//!   side, [`aws`] for the cloud, [`life_like`] for a small cluster with something of everything, [`filler`] for a
//!   large one, [`karpenter`] with its [`node_claim`]s, [`watch`] to wait;
//! * what messages about drains go to: the [`announcer`] behind its queue, a [`webhook`], a [`forward_proxy`];
//! * the function under test: [`lambda`] drives it, [`proxy`] stands between it and the API server and
//!   carries bytes, [`gateway`] carries requests and lets some go wrong, [`audit`] counts what it asked;
//! * [`demo`] shows all of it to a person, [`play`] keeps it up for one, [`doctor`] shows what the doctor finds in it;
//! * [`faults`] goes through what can go wrong at each step;
//! * [`bench`] measures the function, [`peers`] sets it beside others, [`load`] counts what it costs in a
//!   large cluster, all over `measure`;
//! * what the supervisor is made of: [`supervisor`], which reads like the start of a world, above
//!   `control_plane`, `cloud`, `certs`, `processes`, `setup`; [`guard`] ties a process to its parent.

pub mod announcer;
pub mod audit;
pub mod aws;
pub mod bench;
mod certs;
mod cloud;
pub mod cluster;
mod control_plane;
pub mod demo;
pub mod doctor;
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
pub mod life_like;
pub mod load;
mod measure;
pub mod node_claim;
pub mod nodes;
pub mod peers;
pub mod play;
pub mod pods;
mod processes;
pub mod proxy;
mod setup;
mod site;
pub mod supervisor;
mod tls_listener;
pub mod watch;
pub mod webhook;
pub mod world;

pub use announcer::Announcer;
pub use aws::Aws;
pub use cluster::{Cluster, Description};
pub use error::BedError;
pub use nodes::{NodeOptions, TestNode};
pub use webhook::Webhook;
pub use world::{World, WorldOptions};
