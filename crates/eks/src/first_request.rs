//! Tells when a client's first request has a connection to travel on, so that a second one can
//! follow it closely and still come after it.

use std::sync::Arc;
use std::task::{Context, Poll};

use http::Request;
use hyper_util::client::legacy::connect::capture_connection;
use tokio::sync::watch;
use tower::Service;

/// The first request of a client.
#[derive(Debug, Clone)]
pub struct FirstRequest(watch::Receiver<bool>);

impl FirstRequest {
    /// Returns when the request is handed to its connection; never, if none comes about.
    pub async fn connected(&mut self) {
        if self.0.wait_for(|connected| *connected).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Where it is told that there is a connection.
pub(crate) type Connected = Arc<watch::Sender<bool>>;

pub(crate) fn channel() -> (Connected, FirstRequest) {
    let (connected, first_request) = watch::channel(false);
    (Arc::new(connected), FirstRequest(first_request))
}

/// The tower service around the connection.
#[derive(Debug, Clone)]
pub(crate) struct Watched<S> {
    inner: S,
    connected: Connected,
}

impl<S> Watched<S> {
    pub(crate) fn new(inner: S, connected: Connected) -> Self {
        Self { inner, connected }
    }
}

impl<S, B> Service<Request<B>> for Watched<S>
where
    S: Service<Request<B>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> S::Future {
        if !*self.connected.borrow() {
            let mut connection = capture_connection(&mut request);
            let connected = Arc::clone(&self.connected);
            tokio::spawn(async move {
                if connection.wait_for_connection_metadata().await.is_some() {
                    connected.send_replace(true);
                }
            });
        }
        self.inner.call(request)
    }
}
