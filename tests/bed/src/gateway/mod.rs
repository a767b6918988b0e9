//! A gateway between the function and a server: a [`Rule`] makes requests fail, all others pass.
//!
//! Before the API server the gateway ends TLS with an authority of its own and speaks HTTP/2 both ways; before the AWS side it
//! speaks plain HTTP. Connections fail in the [`Proxy`] in front of it, [`Gateway::network`].
//!
//! # Layout
//! * `call`: names of requests, as in the audit log and in IAM (pure);
//! * `rules`: faults and the requests that they strike;
//! * `answers`: refusals, in the words of the real servers (pure);
//! * `server`: connections, and the requests on them.

mod answers;
mod call;
mod rules;
mod server;

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
use crate::tls::RotatingTls;
use crate::world::World;
use call::Language;
use server::GatewayServer;

/// A gateway before one server. It ends with its connections when dropped.
#[derive(Debug)]
pub struct Gateway {
    network: Proxy,
    rules: Rules,
    tls: Option<Arc<RotatingTls>>,
    _until_dropped: oneshot::Sender<()>,
}

impl Gateway {
    /// A gateway before the API server. Gateways that share their rules count requests together.
    pub fn before_api_server(cluster: &Cluster, rules: Rules) -> Result<Self, BedError> {
        let tls = Arc::new(RotatingTls::new()?);
        Self::start(&cluster.api_server, Language::Kubernetes, Some(tls), Some(&cluster.ca), rules)
    }

    /// A gateway before the AWS side: [`Gateway::url`] is the function's `AWS_ENDPOINT_URL`.
    pub fn before_aws(world: &World, rules: Rules) -> Result<Self, BedError> {
        Self::start(&world.aws, Language::Aws, None, None, rules)
    }

    fn start(
        server: &str,
        language: Language,
        tls: Option<Arc<RotatingTls>>,
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
        // A thread of its own: a busy test does not slow it down. All connections end with the runtime.
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

    pub fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.network.address())
    }

    /// The network of the gateway's connections.
    pub fn network(&self) -> &Proxy {
        &self.network
    }

    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The gateway's authority as EKS shows one: base64 of PEM.
    pub fn ca(&self) -> String {
        STANDARD.encode(self.tls.as_deref().map(RotatingTls::authority).unwrap_or_default())
    }

    /// Signs the certificate by a new authority. Open connections go on.
    pub fn rotate_authority(&self) -> Result<(), BedError> {
        self.tls.as_deref().map_or(Ok(()), RotatingTls::rotate)
    }

    /// Has EKS show the gateway as the cluster's endpoint to one caller.
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
            // The client reports how its connection ends.
            Ok((stream, _)) => drop(tokio::spawn(Arc::clone(&gateway_server).serve(stream))),
            Err(error) => return error,
        }
    }
}
