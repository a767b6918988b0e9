//! The bed's HTTP client: plain HTTP on this machine, never through a proxy that the environment names.

use reqwest::Client;
use reqwest::redirect::Policy;

/// A client that follows no redirect.
pub(crate) fn client() -> Client {
    // The announce function has reqwest built with TLS and without a crypto provider, and so has the bed. Who comes second
    // finds one installed, and that is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    // Reading the machine's own authorities took a third of a test program's processor time.
    let client = Client::builder().no_proxy().redirect(Policy::none()).tls_certs_only([]).build();
    client.expect("with a crypto provider there is nothing to fail on")
}
