//! Kubernetes client for one cluster.
//!
//! A client lives for one invocation. Lambda freezes the process between invocations, and a connection that is cut in this time
//! fails at its next use.

use std::fmt;
use std::sync::Arc;

use aws_credential_types::Credentials;

use crate::bearer::Signer;
use crate::clusters::Cluster;
use crate::renewing::{Renewals, Renewing};
use crate::transport::{ConnectError, is_certificate, is_connect, transport};

/// Client for one cluster over one connection. Unlike `kube::Client`, it implements `Debug`.
#[derive(Clone)]
pub struct Connection {
    pub client: kube::Client,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}

/// Makes a client for `cluster` that signs tokens with `credentials` and renews the cluster's description after a failed
/// connection. Sends no request.
pub fn connect(
    cluster: &Cluster,
    renewals: &Renewals,
    region: &str,
    credentials: Credentials,
) -> Result<Connection, ConnectError> {
    let signer = Arc::new(Signer::new(cluster.name.clone(), region.to_owned(), credentials));
    let transport = move |cluster: &Cluster| transport(cluster, Arc::clone(&signer));
    let service = Renewing::new(cluster, renewals.clone(), transport)?;
    Ok(Connection { client: kube::Client::new(service, "default") })
}

/// Cause of a failed connection. The cached description of the cluster may be out of date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionFailure {
    /// The server's certificate is not signed by the cluster's authority for the endpoint.
    Certificate,
    /// No answer: DNS, TCP or another TLS error.
    Network,
}

/// Returns the cause if the connection failed. `None`: the error came over an established connection.
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
        connect(&cluster, &Renewals::new(clusters), "us-east-1", Credentials::new("a", "b", None, None, "test"))
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
