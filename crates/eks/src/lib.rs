//! Connects to EKS clusters: finds endpoints ([`Clusters`]), signs bearer tokens ([`token`]) and creates clients ([`connect`]).

mod bearer;
mod client;
mod clusters;
mod connector;
mod renewing;
mod stored;
pub mod token;
mod transport;

pub use client::{Connection, ConnectionFailure, connect, connection_failure};
pub use clusters::{Cluster, Clusters, DescribeError};
pub use renewing::DescribeLimit;
pub use stored::{StoredClusters, UnlistedNames};
pub use transport::ConnectError;
