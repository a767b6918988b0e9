//! Asks EKS again when no connection comes about: the cluster may have another certificate
//! authority or another endpoint by now. The request has failed, and does not wait for EKS; the first one
//! after its answer goes the new way, if there is one.

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

/// How long not to ask EKS again: this long at first, twice as long each time, and no longer than the longest. An API server that is
/// down is connected to many times a second. In a storm one that is slow is so for hundreds of functions, and EKS answers some ten
/// calls a second for all of them.
const FIRST_PAUSE: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_secs(16);

/// Asks EKS again, less and less often. Connections that are tried one after another share it.
#[derive(Debug, Clone)]
pub struct Renewals {
    clusters: Arc<Clusters>,
    /// Held while EKS is asked.
    asked: Arc<tokio::sync::Mutex<Option<Asked>>>,
}

#[derive(Clone)]
pub(crate) struct Renewing {
    current: Arc<Mutex<Current>>,
    renewals: Renewals,
    transport: Arc<MakeTransport>,
}

#[derive(Clone)]
struct Current {
    cluster: Cluster,
    transport: Transport,
}

#[derive(Debug, Clone, Copy)]
struct Asked {
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

impl Renewals {
    #[must_use]
    pub fn new(clusters: Arc<Clusters>) -> Self {
        Self { clusters, asked: Arc::default() }
    }
}

impl Renewing {
    pub(crate) fn new(
        cluster: &Cluster,
        renewals: Renewals,
        transport: impl Fn(&Cluster) -> Result<Transport, ConnectError> + Send + Sync + 'static,
    ) -> Result<Self, ConnectError> {
        let current = Current { cluster: cluster.clone(), transport: transport(cluster)? };
        Ok(Self { current: Arc::new(Mutex::new(current)), renewals, transport: Arc::new(transport) })
    }

    fn current(&self) -> Current {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Has EKS asked, unless it is being asked or has been asked a moment ago, or requests go another way by now than the one that
    /// `failed`. Nobody waits for it: an API server that was out of reach for a moment takes the next request, however long EKS
    /// takes to say that it has not moved.
    fn renew(&self, failed: &Cluster) {
        let Ok(mut asked) = Arc::clone(&self.renewals.asked).try_lock_owned() else { return };
        if self.current().cluster != *failed || asked.is_some_and(|asked| asked.at.elapsed() < asked.pause) {
            return;
        }
        *asked = Some(Asked::after(*asked));
        let (renewing, failed) = (self.clone(), failed.clone());
        let renewed = async move {
            match renewing.other_than(&failed).await {
                Ok(Some(other)) => *renewing.current.lock().unwrap_or_else(PoisonError::into_inner) = other,
                Ok(None) => {}
                Err(error) => {
                    let cluster = &failed.name;
                    tracing::warn!(cluster.name = %cluster, error = %error, "cannot ask EKS about cluster {cluster} again");
                }
            }
            drop(asked);
        };
        tokio::spawn(renewed.in_current_span());
    }

    /// The way that EKS shows now, if it is another. The old one keeps its connections: one may have come about meanwhile.
    async fn other_than(&self, known: &Cluster) -> Result<Option<Current>, RenewError> {
        let cluster = self.renewals.clusters.renew(&known.name).await?;
        if cluster == *known {
            return Ok(None);
        }
        let transport = (self.transport)(&cluster)?;
        Ok(Some(Current { cluster, transport }))
    }
}

impl Asked {
    fn after(before: Option<Self>) -> Self {
        let pause = before.map_or(FIRST_PAUSE, |before| LONGEST_PAUSE.min(2 * before.pause));
        Self { at: Instant::now(), pause }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eks_is_asked_less_and_less_often() {
        let pauses = std::iter::successors(Some(Asked::after(None)), |before| Some(Asked::after(Some(*before))));
        let seconds: Vec<_> = pauses.take(6).map(|asked| asked.pause.as_secs()).collect();
        assert_eq!(seconds, [2, 4, 8, 16, 16, 16]);
    }
}
