//! The bed's HTTP client: plain HTTP on this machine, without the environment's proxy.

use reqwest::Client;
use reqwest::redirect::Policy;

pub(crate) fn client() -> Client {
    // reqwest is built with TLS and without a crypto provider. Fails if a provider is installed, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    // Without the machine's authorities: reading them took a third of a test program's processor time.
    let client = Client::builder().no_proxy().redirect(Policy::none()).tls_certs_only([]).build();
    client.expect("with a crypto provider there is nothing to fail on")
}
