//! A Kubernetes client for one cluster.
//!
//! A client lives for one invocation: Lambda freezes the process in between, and a connection
//! that was cut meanwhile fails only when it is used.

use std::fmt;
use std::sync::Arc;

use aws_credential_types::Credentials;

use crate::bearer::Signer;
use crate::clusters::Cluster;
use crate::renewing::{Renewals, Renewing};
use crate::transport::{ConnectError, is_certificate, is_connect, transport};

/// A client for one cluster, over one connection. Unlike kube's client it can stand in what is `Debug`.
#[derive(Clone)]
pub struct Connection {
    pub client: kube::Client,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}

/// A client for `cluster` that signs its tokens with `credentials`, and has EKS asked again when
/// no connection comes about. No request is made yet.
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

/// Why no connection came about. What we know of the cluster may then be out of date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionFailure {
    /// Who answered could not show a certificate that the cluster's authority has signed for the endpoint.
    Certificate,
    /// Nobody answered: DNS, TCP, or what remains of TLS.
    Network,
}

/// Why no connection came about. `None`: one did, and something else is wrong.
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
    fn an_endpoint_that_is_no_url_is_named() {
        let error = attempt("not a url", b"").err().unwrap();
        assert_eq!(error.to_string(), "cluster prod has an endpoint that is no URL: not a url");
    }

    #[test]
    fn an_authority_without_a_certificate_is_refused() {
        let error = attempt("https://127.0.0.1", b"").err().unwrap();
        assert_eq!(
            error.to_string(),
            "cluster prod has a certificate authority that cannot be read: it holds no certificate"
        );
    }
}
