//! Access to an EKS cluster from outside: endpoint and certificate authority ([`Clusters`]), bearer token ([`token`]) and a
//! Kubernetes client over one HTTP/2 connection ([`connect`]).
//!
//! # Layout
//! * `clusters`: `DescribeCluster`, cached while the function is warm
//! * `remembered`: copies in Parameter Store, used when EKS does not answer
//! * `token`: presigned `GetCallerIdentity`, the bearer token of EKS
//! * `bearer`: adds a valid token to every request
//! * `client`: client for one cluster
//! * `transport`: the connection, and the errors of one that was never made
//! * `connector`: connects within a timeout
//! * `renewing`: describes the cluster anew after a failed connection

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
