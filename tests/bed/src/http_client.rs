//! The bed's HTTP client: plain HTTP on this machine, never through a proxy that the environment names.

use reqwest::Client;
use reqwest::redirect::Policy;

/// A client that follows no redirect.
pub(crate) fn client() -> Client {
    // The announce function has reqwest built with TLS and without a crypto provider, and so has the bed. Who comes second
    // finds one installed, and that is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::builder().no_proxy().redirect(Policy::none()).build();
    client.expect("with a crypto provider there is nothing to fail on")
}
