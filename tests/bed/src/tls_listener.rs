//! A listener for servers of the internet, such as a webhook: TLS, by an authority that only the functions of the bed know.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, LazyLock};

use axum::serve::Listener;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::certs::Authority;
use crate::error::BedError;

/// One for the whole process, so that a function may be told of it before a server is there.
static AUTHORITY: LazyLock<Authority> =
    LazyLock::new(|| Authority::new("authority of the internet").expect("rcgen makes an authority of a name"));

/// The authority's certificate, for whom `SSL_CERT_FILE` names it to.
pub(crate) fn authority() -> String {
    AUTHORITY.pem()
}

pub(crate) struct TlsListener {
    listener: TcpListener,
    acceptor: TlsAcceptor,
}

impl TlsListener {
    pub(crate) fn new(listener: TcpListener, name: &str) -> Result<Self, BedError> {
        let identity = AUTHORITY.server(name)?;
        let chain = vec![CertificateDer::from_pem_slice(identity.certificate.as_bytes()).expect("rcgen writes PEM")];
        let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).expect("rcgen writes PEM");
        let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("ring supports TLS 1.2 and 1.3")
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .expect("the key is the certificate's");
        Ok(Self { listener, acceptor: TlsAcceptor::from(Arc::new(config)) })
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
                Err(error) => eprintln!("a client has not come through the TLS handshake: {error}"),
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}
