//! Asks EKS again when no connection comes about: the cluster may have another certificate
//! authority or another endpoint by now. The request has failed; the next one goes the new way.

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

use crate::cluster::Cluster;
use crate::clusters::{Clusters, DescribeError};
use crate::transport::{ConnectError, Transport, is_connect};

/// An API server that is down is connected to many times a second, and EKS has limits of its own.
const PAUSE: Duration = Duration::from_secs(2);

/// The tower service around the transport.
#[derive(Clone)]
pub(crate) struct Renewing {
    current: Arc<Mutex<Current>>,
    /// When it was last made again; held while it is.
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

    /// Makes the transport again, unless another request has seen to it.
    async fn renew(&self, failed: u32) {
        let mut renewed = self.renewed.lock().await;
        if self.current().generation != failed || renewed.is_some_and(|at| at.elapsed() < PAUSE) {
            return;
        }
        *renewed = Some(Instant::now());
        match self.source.transport().await {
            Ok(transport) => {
                let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
                *current = Current { generation: failed + 1, transport };
            }
            Err(error) => {
                let cluster = &self.source.cluster;
                tracing::warn!(cluster.name = %cluster, error = %error, "cannot ask EKS about cluster {cluster} again");
            }
        }
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
                renewing.renew(generation).await;
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
