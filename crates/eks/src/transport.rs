//! Sends all requests to one cluster endpoint over one HTTP/2 connection.
//!
//! kube's default client opens an HTTP/1.1 connection for each concurrent request. The default client also retries status 429,
//! which would hide a blocking `PodDisruptionBudget`.

use std::sync::Arc;
use std::time::Duration;

use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::Body;
use kube::client::middleware::{BaseUri, BaseUriLayer};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use tower::Layer as _;

use crate::bearer::{Bearer, Signer};
use crate::clusters::Cluster;
use crate::connector::Connector;

/// Interval of HTTP/2 pings, which detect a dead connection within seconds.
const PING_EVERY: Duration = Duration::from_secs(5);
const PING_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("cluster {cluster} has an endpoint that is no URL: {endpoint}")]
    Endpoint {
        cluster: String,
        endpoint: String,
        #[source]
        source: http::uri::InvalidUri,
    },
    /// The cluster's certificate authority contains no readable certificate.
    #[error("cluster {cluster} has a certificate authority that cannot be read: {why}")]
    Authority { cluster: String, why: String },
}

/// HTTP/2 connection to one endpoint. Adds a bearer token to every request.
pub(crate) type Transport = BaseUri<Bearer<legacy::Client<Connector, Body>>>;

/// Creates the transport to a cluster without connecting.
pub(crate) fn transport(cluster: &Cluster, signer: Arc<Signer>) -> Result<Transport, ConnectError> {
    let endpoint = cluster.endpoint.parse::<http::Uri>().map_err(|source| ConnectError::Endpoint {
        cluster: cluster.name.to_string(),
        endpoint: cluster.endpoint.clone(),
        source,
    })?;
    let connection = legacy::Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        // Without this setting, each concurrent first request opens a connection, before the server has negotiated HTTP/2.
        .http2_only(true)
        .http2_keep_alive_interval(PING_EVERY)
        .http2_keep_alive_timeout(PING_TIMEOUT)
        .build(Connector::new(tls(cluster)?));
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

pub(crate) fn is_certificate(error: &(dyn std::error::Error + 'static)) -> bool {
    if let Some(tls) = error.downcast_ref::<rustls::Error>() {
        return matches!(tls, rustls::Error::InvalidCertificate(_));
    }
    // The `source` of an I/O error omits the inner error.
    let made_from = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    made_from.is_some_and(|inner| is_certificate(inner)) || error.source().is_some_and(is_certificate)
}
