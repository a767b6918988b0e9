//! Asks EKS again when no connection comes about: the cluster may have another certificate
//! authority or another endpoint by now. The request has failed, and does not wait for EKS; the first one
//! after its answer goes the new way.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use kube::client::Body;
use spillway_core::cluster::ClusterName;
use tokio::time::Instant;
use tower::{BoxError, Service};
use tracing::Instrument as _;

use crate::cluster::Cluster;
use crate::clusters::{Clusters, DescribeError};
use crate::transport::{ConnectError, Transport, is_connect};

/// An API server that is down is connected to many times a second, and EKS has limits of its own.
const PAUSE: Duration = Duration::from_secs(2);

/// The tower service around the transport.
#[derive(Clone)]
pub(crate) struct Renewing {
    current: Arc<Mutex<Current>>,
    /// When EKS was last asked; held while it is.
    renewed: Arc<tokio::sync::Mutex<Option<Instant>>>,
    source: Arc<Source>,
}

/// The transport in use.
#[derive(Clone)]
struct Current {
    /// How many there were before it.
    generation: u32,
    transport: Transport,
}

/// What a new transport is made from.
struct Source {
    cluster: ClusterName,
    clusters: Arc<Clusters>,
    transport: Box<MakeTransport>,
}

type MakeTransport = dyn Fn(&Cluster) -> Result<Transport, ConnectError> + Send + Sync;

#[derive(Debug, thiserror::Error)]
enum RenewError {
    #[error(transparent)]
    Describe(#[from] DescribeError),
    #[error(transparent)]
    Connect(#[from] ConnectError),
}

impl Renewing {
    pub(crate) fn new(
        cluster: &Cluster,
        clusters: Arc<Clusters>,
        transport: impl Fn(&Cluster) -> Result<Transport, ConnectError> + Send + Sync + 'static,
    ) -> Result<Self, ConnectError> {
        let current = Current { generation: 0, transport: transport(cluster)? };
        let source = Source { cluster: cluster.name.clone(), clusters, transport: Box::new(transport) };
        Ok(Self { current: Arc::new(Mutex::new(current)), renewed: Arc::default(), source: Arc::new(source) })
    }

    fn current(&self) -> Current {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Has EKS asked, unless it is being asked or has been asked a moment ago. Nobody waits for it: an API server that was out of
    /// reach for a moment takes the next request, however long EKS takes to say that it has not moved.
    fn renew(&self, failed: u32) {
        let Ok(mut renewed) = Arc::clone(&self.renewed).try_lock_owned() else { return };
        if self.current().generation != failed || renewed.is_some_and(|at| at.elapsed() < PAUSE) {
            return;
        }
        *renewed = Some(Instant::now());
        let (current, source) = (Arc::clone(&self.current), Arc::clone(&self.source));
        let renewing = async move {
            match source.transport().await {
                Ok(transport) => {
                    let mut current = current.lock().unwrap_or_else(PoisonError::into_inner);
                    *current = Current { generation: failed + 1, transport };
                }
                Err(error) => {
                    let cluster = &source.cluster;
                    tracing::warn!(cluster.name = %cluster, error = %error, "cannot ask EKS about cluster {cluster} again");
                }
            }
            drop(renewed);
        };
        tokio::spawn(renewing.in_current_span());
    }
}

impl Source {
    async fn transport(&self) -> Result<Transport, RenewError> {
        let cluster = self.clusters.renew(&self.cluster).await?;
        Ok((self.transport)(&cluster)?)
    }
}

impl Service<Request<Body>> for Renewing {
    type Response = Response<Incoming>;
    type Error = BoxError;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    /// The transport is a pool, which is always ready.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Current { generation, mut transport } = self.current();
        let renewing = self.clone();
        Box::pin(async move {
            let answer = transport.call(request).await;
            if answer.as_ref().is_err_and(|error| is_connect(error.as_ref())) {
                renewing.renew(generation);
            }
            answer
        })
    }
}

impl fmt::Debug for Renewing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Renewing").field("cluster", &self.source.cluster).finish_non_exhaustive()
    }
}
