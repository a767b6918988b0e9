//! A gateway between the function and a server: it sees every request whole, and some go wrong.
//!
//! It passes everything on to the real server, streams as streams, until a [`Rule`] says otherwise.
//! Before the API server it ends TLS with an authority of its own and speaks HTTP/2 both ways; before
//! the AWS side it speaks plain HTTP. What happens to connections rather than to requests is made by
//! the [`Proxy`] in front of it, [`Gateway::network`].
//!
//! # Layout
//! * this file: what a test holds;
//! * `call`: what a request asks for, in the words of the audit log and of IAM (pure);
//! * `rules`: which requests go wrong, and how;
//! * `answers`: the refusals, as the real servers word them (pure);
//! * `server`: the connections, and the way of a request through them;
//! * `tls`: who the gateway says it is.

mod answers;
mod call;

mod rules;
mod server;
mod tls;

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

pub use answers::Answer;
pub use rules::{Fault, Held, Rule, Rules, Side, Which};

use crate::cluster::Cluster;
use crate::error::BedError;
use crate::proxy::Proxy;
use crate::world::World;
use call::Language;
use server::GatewayServer;
use tls::Tls;

/// A gateway before one server. It ends, with its connections, when dropped.
#[derive(Debug)]
pub struct Gateway {
    network: Proxy,
    rules: Rules,
    tls: Option<Arc<Tls>>,
    /// Its end tells the gateway's thread to end.
    _until_dropped: oneshot::Sender<()>,
}

impl Gateway {
    /// Before the API server. Gateways that share their rules count requests together.
    pub fn before_api_server(cluster: &Cluster, rules: Rules) -> Result<Self, BedError> {
        let tls = Arc::new(Tls::new()?);
        Self::start(&cluster.api_server, Language::Kubernetes, Some(tls), Some(&cluster.ca), rules)
    }

    /// Before the AWS side: [`Gateway::url`] is what the function needs as `AWS_ENDPOINT_URL`.
    pub fn before_aws(world: &World, rules: Rules) -> Result<Self, BedError> {
        Self::start(&world.aws, Language::Aws, None, None, rules)
    }

    fn start(
        server: &str,
        language: Language,
        tls: Option<Arc<Tls>>,
        server_ca: Option<&std::path::Path>,
        rules: Rules,
    ) -> Result<Self, BedError> {
        let opening = || BedError::io(format!("open a gateway before {server}"));
        let gateway_server = GatewayServer::new(server, language, tls.clone(), server_ca, rules.clone())?;
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(opening())?;
        listener.set_nonblocking(true).map_err(opening())?;
        let network = listener.local_addr().and_then(Proxy::start).map_err(opening())?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(opening())?;
        let (until_dropped, dropped) = oneshot::channel::<()>();
        // A thread of its own, so that a busy test does not slow it down. All connections end with the runtime.
        thread::spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    error = accept(listener, Arc::new(gateway_server)) => eprintln!("a gateway has failed: {error}"),
                    _ = dropped => {}
                }
            });
        });
        Ok(Self { network, rules, tls, _until_dropped: until_dropped })
    }

    /// Where the function finds it.
    #[must_use]
    pub fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.network.address())
    }

    /// What happens to connections: refused, reset, silent, slow.
    #[must_use]
    pub fn network(&self) -> &Proxy {
        &self.network
    }

    /// What happens to requests.
    #[must_use]
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Its certificate authority as EKS shows one: base64 of PEM.
    #[must_use]
    pub fn ca(&self) -> String {
        STANDARD.encode(self.tls.as_deref().map(Tls::authority).unwrap_or_default())
    }

    /// From now on a new authority has signed the certificate. Connections that stand go on.
    pub fn rotate_authority(&self) -> Result<(), BedError> {
        self.tls.as_deref().map_or(Ok(()), Tls::rotate)
    }

    /// Lets EKS show the gateway as the cluster's endpoint to one caller.
    pub async fn show(&self, cluster: &Cluster, access_key_id: &str) -> Result<(), BedError> {
        let (url, ca) = (self.url(), self.ca());
        cluster.aws_side().override_endpoint(access_key_id, &cluster.cluster, Some(&url), Some(&ca)).await
    }
}

async fn accept(listener: std::net::TcpListener, gateway_server: Arc<GatewayServer>) -> io::Error {
    let listener = match TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return error,
    };
    loop {
        match listener.accept().await {
            // How a connection ends is the client's to tell.
            Ok((stream, _)) => drop(tokio::spawn(Arc::clone(&gateway_server).serve(stream))),
            Err(error) => return error,
        }
    }
}

#[cfg(test)]
mod tests;
