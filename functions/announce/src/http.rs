//! HTTP client for webhooks, with a timeout and without redirects.

use std::sync::Arc;
use std::time::Duration;

use lambda_runtime::Error;
use reqwest::{Client, ClientBuilder, Proxy, Response, redirect};
use rustls::ClientConfig;
use rustls::crypto::ring;
use rustls_platform_verifier::BuilderVerifierExt as _;

/// Timeout of an HTTP request, including the answer.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(5);

/// Builds a client that ignores the proxy variables of the environment.
pub(crate) fn client(proxy: Option<Proxy>) -> Result<Client, Error> {
    let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_platform_verifier()?
        .with_no_client_auth();
    let client = Client::builder()
        .no_proxy()
        .redirect(redirect::Policy::none())
        .timeout(TIMEOUT)
        .user_agent(concat!("spillway/", env!("CARGO_PKG_VERSION")))
        .tls_backend_preconfigured(tls);
    Ok(proxy.into_iter().fold(client, ClientBuilder::proxy).build()?)
}

/// Reads at most `most` bytes of a response.
pub(crate) async fn read(mut response: Response, most: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while bytes.len() < most
        && let Ok(Some(chunk)) = response.chunk().await
    {
        bytes.extend_from_slice(&chunk[..chunk.len().min(most - bytes.len())]);
    }
    bytes
}

/// Returns the error and its causes as text. Omits the URL, which is a secret.
pub(crate) fn why(error: reqwest::Error) -> String {
    if error.is_timeout() {
        return format!("nothing within {} s", TIMEOUT.as_secs());
    }
    let error = error.without_url();
    let mut text = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
