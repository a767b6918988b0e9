//! Counts the requests that go out.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll};

use http::Request;
use tower::Service;

/// How many requests have gone out, by all that count with it.
#[derive(Debug, Clone, Default)]
pub struct Sent(Arc<AtomicU32>);

impl Sent {
    /// Another request goes out.
    pub fn one_more(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// How many have.
    #[must_use]
    pub fn so_far(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The tower service around what sends.
#[derive(Debug, Clone)]
pub(crate) struct Counted<S> {
    inner: S,
    sent: Sent,
}

impl<S> Counted<S> {
    pub(crate) fn new(inner: S, sent: Sent) -> Self {
        Self { inner, sent }
    }
}

impl<S, B> Service<Request<B>> for Counted<S>
where
    S: Service<Request<B>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> S::Future {
        self.sent.one_more();
        self.inner.call(request)
    }
}
