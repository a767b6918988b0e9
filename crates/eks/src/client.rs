//! Kubernetes client for one cluster and one invocation.
//!
//! Connections are not reused across invocations: while Lambda freezes the process, a connection may be cut.

use std::fmt;
use std::sync::Arc;

use aws_credential_types::Credentials;

use crate::bearer::Signer;
use crate::clusters::Cluster;
use crate::renewing::{DescribeLimit, Renewing};
use crate::transport::{ConnectError, is_certificate, is_connect, transport};

/// Client for one cluster, wrapped to implement `Debug`.
#[derive(Clone)]
pub struct Connection {
    pub client: kube::Client,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}

/// Creates a client without connecting. If a connection fails later, the client calls `DescribeCluster`.
pub fn connect(
    cluster: &Cluster,
    describe_limit: &DescribeLimit,
    region: &str,
    credentials: Credentials,
) -> Result<Connection, ConnectError> {
    let signer = Arc::new(Signer::new(cluster.name.clone(), region.to_owned(), credentials));
    let transport = move |cluster: &Cluster| transport(cluster, Arc::clone(&signer));
    let service = Renewing::new(cluster, describe_limit.clone(), transport)?;
    Ok(Connection { client: kube::Client::new(service, "default") })
}

/// Cause of a failed connection to the API server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionFailure {
    /// The API server's certificate is invalid, for example signed by another certificate authority.
    Certificate,
    /// DNS, TCP or TLS failure, except an invalid certificate.
    Network,
}

/// Returns the cause of a failed connection, or `None` for every other error.
#[must_use]
pub fn connection_failure(error: &kube::Error) -> Option<ConnectionFailure> {
    match error {
        kube::Error::Service(source) if is_certificate(source.as_ref()) => Some(ConnectionFailure::Certificate),
        kube::Error::Service(source) if is_connect(source.as_ref()) => Some(ConnectionFailure::Network),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use spillway_core::cluster::ClusterName;

    use super::*;
    use crate::clusters::Clusters;

    fn attempt(endpoint: &str, ca: &[u8]) -> Result<Connection, ConnectError> {
        let cluster = Cluster { name: ClusterName::new("prod"), endpoint: endpoint.to_owned(), ca: ca.to_vec() };
        let config = aws_sdk_eks::Config::builder().behavior_version_latest().build();
        let clusters = Arc::new(Clusters::new(aws_sdk_eks::Client::from_conf(config), None));
        connect(&cluster, &DescribeLimit::new(clusters), "us-east-1", Credentials::new("a", "b", None, None, "test"))
    }

    #[test]
    fn unusable_endpoint_or_authority_is_named() {
        for (endpoint, sentence) in [
            ("not a url", "cluster prod has an endpoint that is no URL: not a url"),
            (
                "https://127.0.0.1",
                "cluster prod has a certificate authority that cannot be read: it holds no certificate",
            ),
        ] {
            assert_eq!(attempt(endpoint, b"").err().unwrap().to_string(), sentence);
        }
    }
}
