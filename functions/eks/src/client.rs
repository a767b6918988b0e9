//! A Kubernetes client that carries every request over one HTTP/2 connection.
//!
//! kube's stock client asks for HTTP/1.1, so that each request in flight opens a TLS
//! connection of its own (110 of them for a full node), and it answers 429 by retrying up to
//! fifteen times by itself, which would hide a `PodDisruptionBudget`. Both are left out here.
//!
//! A client lives for one invocation: Lambda freezes the process in between, and a connection
//! that was cut meanwhile fails only when it is used.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use aws_credential_types::Credentials;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::{self, connect::HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::Body;
use kube::client::middleware::{BaseUri, BaseUriLayer};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use tower::Layer as _;

use crate::bearer::{Bearer, Signer};
use crate::cluster::{Cluster, Clusters};
use crate::first_request::{self, Connected, FirstRequest, Watched};
use crate::renewing::Renewing;

/// A handshake takes two round trips; five seconds are plenty across the world and still
/// leave most of a two-minute notice.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// HTTP/2 pings find a connection that has gone silent, which TCP would not for minutes.
const PING_EVERY: Duration = Duration::from_secs(5);
const PING_TIMEOUT: Duration = Duration::from_secs(5);

/// The cluster's data cannot make a connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The endpoint is no URL.
    #[error("cluster {cluster} has an endpoint that is no URL: {endpoint}")]
    Endpoint {
        /// The cluster's name.
        cluster: String,
        /// What EKS said.
        endpoint: String,
        /// Why it is none.
        #[source]
        source: http::uri::InvalidUri,
    },
    /// The certificate authority holds no certificate that we can read.
    #[error("cluster {cluster} has a certificate authority that cannot be read: {why}")]
    Authority {
        /// The cluster's name.
        cluster: String,
        /// What is wrong with it.
        why: String,
    },
}

/// A client, and word of its first request.
#[derive(Clone)]
pub struct Connection {
    /// Makes the requests.
    pub client: kube::Client,
    /// The first of them.
    pub first_request: FirstRequest,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("first_request", &self.first_request).finish_non_exhaustive()
    }
}

/// One connection to one endpoint, with a token on every request.
pub(crate) type Transport = BaseUri<Bearer<Watched<legacy::Client<HttpsConnector<HttpConnector>, Body>>>>;

/// A client for `cluster` that signs its tokens with `credentials`, and asks `clusters` anew when
/// no connection comes about. No request is made yet.
pub fn connect(
    cluster: &Cluster,
    clusters: Arc<Clusters>,
    region: &str,
    credentials: Credentials,
) -> Result<Connection, ConnectError> {
    let signer = Arc::new(Signer::new(cluster.name.clone(), region.to_owned(), credentials));
    let (connected, first_request) = first_request::channel();
    let transport = move |cluster: &Cluster| transport(cluster, Arc::clone(&signer), connected.clone());
    let service = Renewing::new(cluster, clusters, transport)?;
    Ok(Connection { client: kube::Client::new(service, "default"), first_request })
}

fn transport(cluster: &Cluster, signer: Arc<Signer>, connected: Connected) -> Result<Transport, ConnectError> {
    let endpoint = cluster.endpoint.parse::<http::Uri>().map_err(|source| ConnectError::Endpoint {
        cluster: cluster.name.to_string(),
        endpoint: cluster.endpoint.clone(),
        source,
    })?;
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_nodelay(true);
    http.set_connect_timeout(Some(CONNECT_TIMEOUT));
    let https = hyper_rustls::HttpsConnectorBuilder::new()
        .with_tls_config(tls(cluster)?)
        .https_only()
        .enable_http2()
        .wrap_connector(http);
    let connection = legacy::Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        // One connection: without this, requests that start together open one each, because
        // none of them knows yet that the server speaks HTTP/2.
        .http2_only(true)
        .http2_keep_alive_interval(PING_EVERY)
        .http2_keep_alive_timeout(PING_TIMEOUT)
        .build(https);
    let connection = Watched::new(connection, connected);
    Ok(BaseUriLayer::new(endpoint).layer(Bearer::new(connection, signer)))
}

fn tls(cluster: &Cluster) -> Result<rustls::ClientConfig, ConnectError> {
    let unreadable = |why: String| ConnectError::Authority { cluster: cluster.name.to_string(), why };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&cluster.ca) {
        let certificate = certificate.map_err(|error| unreadable(error.to_string()))?;
        roots.add(certificate).map_err(|error| unreadable(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(unreadable("it holds no certificate".to_owned()));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    Ok(rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring supports TLS 1.2 and 1.3")
        .with_root_certificates(roots)
        .with_no_client_auth())
}

/// Whether no connection came about: DNS, TCP or TLS failed. What we know of the cluster may
/// then be out of date.
#[must_use]
pub fn is_connection_failure(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Service(source) if is_connect(source.as_ref()))
}

/// The same of an error below kube's.
pub(crate) fn is_connect(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut source = Some(error);
    while let Some(error) = source {
        if let Some(transport) = error.downcast_ref::<legacy::Error>() {
            return transport.is_connect();
        }
        source = error.source();
    }
    false
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use crate::cluster::ClusterName;

    fn attempt(endpoint: &str, ca: &[u8]) -> Result<Connection, ConnectError> {
        let cluster = Cluster { name: ClusterName::new("prod"), endpoint: endpoint.to_owned(), ca: ca.to_vec() };
        let config = aws_sdk_eks::Config::builder().behavior_version_latest().build();
        let clusters = Arc::new(Clusters::new(aws_sdk_eks::Client::from_conf(config)));
        connect(&cluster, clusters, "us-east-1", Credentials::new("a", "b", None, None, "test"))
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
