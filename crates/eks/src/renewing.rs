//! Calls `DescribeCluster` after a failed connection, because the endpoint or certificate authority may have changed.
//!
//! The failed request does not wait for `DescribeCluster`. Later requests use the new endpoint.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use kube::client::Body;
use tokio::time::Instant;
use tower::{BoxError, Service};
use tracing::Instrument as _;

use crate::clusters::{Cluster, Clusters, DescribeError};
use crate::transport::{ConnectError, Transport, is_connect};

/// Pause after the first `DescribeCluster` call. Each further pause is twice as long, up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_secs(16);

/// Limits the rate of `DescribeCluster` calls after failed connections. A retry with a new connection uses the same limit.
#[derive(Debug, Clone)]
pub struct DescribeLimit {
    clusters: Arc<Clusters>,
    /// Time of the last `DescribeCluster` call. The lock is held during the call.
    last: Arc<tokio::sync::Mutex<Option<Described>>>,
}

#[derive(Clone)]
pub(crate) struct Renewing {
    current: Arc<Mutex<Current>>,
    describe_limit: DescribeLimit,
    transport: Arc<MakeTransport>,
}

#[derive(Clone)]
struct Current {
    cluster: Cluster,
    transport: Transport,
}

#[derive(Debug, Clone, Copy)]
struct Described {
    at: Instant,
    pause: Duration,
}

type MakeTransport = dyn Fn(&Cluster) -> Result<Transport, ConnectError> + Send + Sync;

#[derive(Debug, thiserror::Error)]
enum RenewError {
    #[error(transparent)]
    Describe(#[from] DescribeError),
    #[error(transparent)]
    Connect(#[from] ConnectError),
}

impl DescribeLimit {
    #[must_use]
    pub fn new(clusters: Arc<Clusters>) -> Self {
        Self { clusters, last: Arc::default() }
    }
}

impl Renewing {
    pub(crate) fn new(
        cluster: &Cluster,
        describe_limit: DescribeLimit,
        transport: impl Fn(&Cluster) -> Result<Transport, ConnectError> + Send + Sync + 'static,
    ) -> Result<Self, ConnectError> {
        let current = Current { cluster: cluster.clone(), transport: transport(cluster)? };
        Ok(Self { current: Arc::new(Mutex::new(current)), describe_limit, transport: Arc::new(transport) })
    }

    fn current(&self) -> Current {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Calls `DescribeCluster` in the background. Does nothing if `failed` is outdated, if a call is in progress, or if the
    /// pause after the last call has not passed.
    fn renew(&self, failed: &Cluster) {
        let Ok(mut last) = Arc::clone(&self.describe_limit.last).try_lock_owned() else { return };
        if self.current().cluster != *failed || last.is_some_and(|last| last.at.elapsed() < last.pause) {
            return;
        }
        *last = Some(Described::after(*last));
        let (renewing, failed) = (self.clone(), failed.clone());
        let renewed = async move {
            match renewing.describe_if_changed(&failed).await {
                Ok(Some(other)) => *renewing.current.lock().unwrap_or_else(PoisonError::into_inner) = other,
                Ok(None) => {}
                Err(error) => {
                    let cluster = &failed.name;
                    tracing::warn!(cluster.name = %cluster, error = %error, "cannot renew the description of cluster {cluster}; using the known endpoint");
                }
            }
            drop(last);
        };
        tokio::spawn(renewed.in_current_span());
    }

    /// Describes the cluster. Returns a new transport if the description has changed, or else `None`.
    async fn describe_if_changed(&self, known: &Cluster) -> Result<Option<Current>, RenewError> {
        let cluster = self.describe_limit.clusters.renew(&known.name).await?;
        if cluster == *known {
            return Ok(None);
        }
        let transport = (self.transport)(&cluster)?;
        Ok(Some(Current { cluster, transport }))
    }
}

impl Described {
    fn after(before: Option<Self>) -> Self {
        let pause = before.map_or(FIRST_PAUSE, |before| LONGEST_PAUSE.min(2 * before.pause));
        Self { at: Instant::now(), pause }
    }
}

impl Service<Request<Body>> for Renewing {
    type Response = Response<Incoming>;
    type Error = BoxError;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    /// Always ready, because the transport opens connections as needed.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Current { cluster, mut transport } = self.current();
        let renewing = self.clone();
        Box::pin(async move {
            let answer = transport.call(request).await;
            if answer.as_ref().is_err_and(|error| is_connect(error.as_ref())) {
                renewing.renew(&cluster);
            }
            answer
        })
    }
}

impl fmt::Debug for Renewing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Renewing").field("cluster", &self.current().cluster.name).finish_non_exhaustive()
    }
}
