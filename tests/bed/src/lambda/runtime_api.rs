//! The Runtime API of one environment, as AWS documents it. Requests of the process become [`Signal`]s.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::outcome::InvocationError;

/// Lambda's limit of 6 MB for an answer, and a little for its envelope.
const LARGEST_ANSWER: usize = 6 * 1024 * 1024 + 100;

#[derive(Debug)]
pub(super) enum Signal {
    /// The process is idle and waits for an event.
    Poll(oneshot::Sender<Event>),
    /// The process answers its event.
    Answer(Result<Bytes, InvocationError>),
    /// The init has failed.
    Failed(InvocationError),
}

/// An event with Lambda's headers.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) request_id: String,
    /// Since 1970.
    pub(super) deadline: Duration,
    pub(super) function_arn: String,
    pub(super) payload: String,
}

#[derive(Debug)]
pub(super) struct RuntimeApi {
    pub(super) address: SocketAddr,
    server: JoinHandle<io::Result<()>>,
}

type Signals = mpsc::UnboundedSender<Signal>;

impl RuntimeApi {
    /// Serves on a free port until dropped.
    pub(super) async fn start() -> io::Result<(Self, mpsc::UnboundedReceiver<Signal>)> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let (sender, signals) = mpsc::unbounded_channel();
        let routes = Router::new()
            .route("/invocation/next", get(next))
            .route("/invocation/{request_id}/response", post(response))
            .route("/invocation/{request_id}/error", post(error))
            .route("/init/error", post(init_error))
            .layer(DefaultBodyLimit::max(LARGEST_ANSWER))
            .with_state(sender);
        let app = Router::new().nest("/2018-06-01/runtime", routes);
        let server = tokio::spawn(async move { axum::serve(listener, app).await });
        Ok((Self { address, server }, signals))
    }
}

impl Drop for RuntimeApi {
    fn drop(&mut self) {
        self.server.abort();
    }
}

// Without an environment, which takes the signals, the process is about to be killed.

async fn next(State(signals): State<Signals>) -> Response {
    let (reply, event) = oneshot::channel();
    let _ = signals.send(Signal::Poll(reply));
    event.await.map_or_else(|_| StatusCode::SERVICE_UNAVAILABLE.into_response(), Event::into_response)
}

impl IntoResponse for Event {
    fn into_response(self) -> Response {
        let headers = [
            ("Content-Type", "application/json".to_owned()),
            ("Lambda-Runtime-Aws-Request-Id", self.request_id),
            ("Lambda-Runtime-Deadline-Ms", self.deadline.as_millis().to_string()),
            ("Lambda-Runtime-Invoked-Function-Arn", self.function_arn),
        ];
        (headers, self.payload).into_response()
    }
}

async fn response(State(signals): State<Signals>, body: Bytes) -> StatusCode {
    accept(&signals, Signal::Answer(Ok(body)))
}

async fn error(State(signals): State<Signals>, body: Bytes) -> StatusCode {
    accept(&signals, Signal::Answer(Err(InvocationError::reported(&body))))
}

async fn init_error(State(signals): State<Signals>, body: Bytes) -> StatusCode {
    accept(&signals, Signal::Failed(InvocationError::reported(&body)))
}

fn accept(signals: &Signals, signal: Signal) -> StatusCode {
    let _ = signals.send(signal);
    StatusCode::ACCEPTED
}
