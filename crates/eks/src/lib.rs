//! Getting into an EKS cluster from outside it: who the cluster is ([`Clusters`]), the token
//! that says who we are ([`token`]) and a Kubernetes client over one HTTP/2 connection
//! ([`connect`]).
//!
//! # Layout
//! * `clusters`: `DescribeCluster`, remembered while the function is warm
//! * `remembered`: Parameter Store, for when EKS does not answer
//! * `token`: the presigned `GetCallerIdentity` that EKS takes as a bearer token
//! * `bearer`: puts a fresh token on every request
//! * `client`: a client for one cluster
//! * `transport`: the one connection, and which errors mean that it was never made
//! * `connector`: makes it, within a time limit
//! * `renewing`: asks EKS again when no connection comes about

mod bearer;
mod client;
mod clusters;
mod connector;
mod remembered;
mod renewing;
pub mod token;
mod transport;

pub use client::{Connection, ConnectionFailure, connect, connection_failure};
pub use clusters::{Cluster, Clusters, DescribeError};
pub use remembered::{OtherNames, Remembered};
pub use renewing::Renewals;
pub use transport::ConnectError;
