//! Connects to an endpoint. One timeout covers DNS, TCP and TLS.

use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use tokio::time::timeout;
use tower::{BoxError, Service};

/// Timeout for DNS, TCP and TLS of one connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, thiserror::Error)]
#[error("no connection within {} s", CONNECT_TIMEOUT.as_secs())]
struct TookTooLong;

#[derive(Debug, Clone)]
pub(crate) struct Connector(HttpsConnector<HttpConnector>);

impl Connector {
    pub(crate) fn new(tls: rustls::ClientConfig) -> Self {
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        http.set_nodelay(true);
        // The timeout is divided among the addresses of the name, so that a dead address does not use all of it.
        http.set_connect_timeout(Some(CONNECT_TIMEOUT));
        Self(
            hyper_rustls::HttpsConnectorBuilder::new()
                .with_tls_config(tls)
                .https_only()
                .enable_http2()
                .wrap_connector(http),
        )
    }
}

impl Service<Uri> for Connector {
    type Response = <HttpsConnector<HttpConnector> as Service<Uri>>::Response;
    type Error = BoxError;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, endpoint: Uri) -> Self::Future {
        let connecting = self.0.call(endpoint);
        Box::pin(async move { timeout(CONNECT_TIMEOUT, connecting).await.map_err(|_| TookTooLong)? })
    }
}
