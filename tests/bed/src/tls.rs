//! TLS servers: the gateway's certificate, which can change, and a listener for servers of the internet, such as a webhook.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use axum::serve::Listener;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::certs::Authority;
use crate::error::BedError;

fn server_config(authority: &Authority, name: &str, protocols: &[&[u8]]) -> Result<Arc<ServerConfig>, BedError> {
    let identity = authority.server(name)?;
    let chain = vec![CertificateDer::from_pem_slice(identity.certificate.as_bytes()).expect("rcgen writes PEM")];
    let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).expect("rcgen writes PEM");
    let mut config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring supports TLS 1.2 and 1.3")
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .expect("the key is the certificate's");
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    Ok(Arc::new(config))
}

/// A server certificate for HTTP/2, and its authority.
#[derive(Debug)]
pub(crate) struct RotatingTls(Mutex<(String, Arc<ServerConfig>)>);

impl RotatingTls {
    pub(crate) fn new() -> Result<Self, BedError> {
        Self::sign().map(|signed| Self(Mutex::new(signed)))
    }

    /// PEM of the authority.
    pub(crate) fn authority(&self) -> String {
        self.signed().0.clone()
    }

    /// Configuration of the next connection.
    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.signed().1)
    }

    pub(crate) fn rotate(&self) -> Result<(), BedError> {
        *self.signed() = Self::sign()?;
        Ok(())
    }

    fn sign() -> Result<(String, Arc<ServerConfig>), BedError> {
        let authority = Authority::new("gateway authority")?;
        Ok((authority.pem(), server_config(&authority, "gateway", &[b"h2"])?))
    }

    fn signed(&self) -> MutexGuard<'_, (String, Arc<ServerConfig>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Authority of the internet. One for the process, so that a function can trust it before a server is there.
static INTERNET: LazyLock<Authority> =
    LazyLock::new(|| Authority::new("authority of the internet").expect("rcgen makes an authority of a name"));

/// PEM of the authority of the internet, for `SSL_CERT_FILE`.
pub(crate) fn internet_authority() -> String {
    INTERNET.pem()
}

pub(crate) struct TlsListener {
    listener: TcpListener,
    acceptor: TlsAcceptor,
}

impl TlsListener {
    pub(crate) fn new(listener: TcpListener, name: &str) -> Result<Self, BedError> {
        Ok(Self { listener, acceptor: TlsAcceptor::from(server_config(&INTERNET, name, &[])?) })
    }
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (stream, address) = Listener::accept(&mut self.listener).await;
            match self.acceptor.accept(stream).await {
                Ok(stream) => return (stream, address),
                Err(error) => eprintln!("TLS handshake of {address} failed: {error}"),
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}
