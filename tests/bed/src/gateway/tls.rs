//! Who the gateway says it is: a certificate of an authority of its own, which can change.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::certs::Authority;
use crate::error::BedError;

const NAME: &str = "gateway";

#[derive(Debug)]
pub(super) struct Tls(Mutex<Shown>);

#[derive(Debug, Clone)]
struct Shown {
    /// PEM.
    authority: String,
    config: Arc<ServerConfig>,
}

impl Tls {
    pub(super) fn new() -> Result<Self, BedError> {
        Shown::new().map(|shown| Self(Mutex::new(shown)))
    }

    pub(super) fn authority(&self) -> String {
        self.shown().authority.clone()
    }

    /// For the next connection.
    pub(super) fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.shown().config)
    }

    pub(super) fn rotate(&self) -> Result<(), BedError> {
        *self.shown() = Shown::new()?;
        Ok(())
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shown {
    fn new() -> Result<Self, BedError> {
        let authority = Authority::new("gateway authority")?;
        let identity = authority.server(NAME)?;
        let chain = vec![CertificateDer::from_pem_slice(identity.certificate.as_bytes()).expect("rcgen writes PEM")];
        let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).expect("rcgen writes PEM");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("ring supports TLS 1.2 and 1.3")
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .expect("the key is the certificate's");
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(Self { authority: authority.pem(), config: Arc::new(config) })
    }
}
