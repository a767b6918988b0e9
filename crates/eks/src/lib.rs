//! Access to an EKS cluster from outside: endpoint and certificate authority ([`Clusters`]), bearer token ([`token`]) and a
//! Kubernetes client over one HTTP/2 connection ([`connect`]).

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
