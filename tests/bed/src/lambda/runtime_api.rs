//! The Runtime API of one environment, as AWS documents it: what the process asks and says becomes
//! a [`Signal`]. What follows from it is the environment's business.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Instant;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::outcome::InvocationError;

/// Lambda takes 6 MB from a function, and a little for what wraps it.
const LARGEST_ANSWER: usize = 6 * 1024 * 1024 + 100;

/// What the process asked or said.
#[derive(Debug)]
pub(super) enum Signal {
    /// It has nothing to do and waits for an event.
    Poll { at: Instant, reply: oneshot::Sender<Event> },
    /// The answer to an event.
    Answer {
        at: Instant,
        request_id: String,
        answer: Result<Bytes, InvocationError>,
        verdict: oneshot::Sender<Verdict>,
    },
    /// It could not start.
    InitFailed { error: InvocationError, verdict: oneshot::Sender<Verdict> },
}

/// Whether what it said belongs here.
#[derive(Debug, Clone, Copy)]
pub(super) enum Verdict {
    Accepted,
    /// No invocation of this id is running.
    UnknownRequest,
    /// Init is over.
    WrongState,
}

/// One event, with what Lambda says about it.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) request_id: String,
    pub(super) deadline_ms: u128,
    pub(super) function_arn: String,
    pub(super) trace_id: String,
    pub(super) payload: String,
}

#[derive(Debug)]
pub(super) struct RuntimeApi {
    pub(super) address: SocketAddr,
    server: JoinHandle<io::Result<()>>,
}

impl RuntimeApi {
    /// Serves on a free port until dropped.
    pub(super) async fn start() -> io::Result<(Self, mpsc::Receiver<Signal>)> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let (sender, signals) = mpsc::channel(1);
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

type Signals = State<mpsc::Sender<Signal>>;

async fn next(State(signals): Signals) -> Response {
    let (reply, event) = oneshot::channel();
    let poll = Signal::Poll { at: Instant::now(), reply };
    // Without an environment there is no process either: it is about to be killed.
    if signals.send(poll).await.is_err() {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    match event.await {
        Ok(event) => event.into_response(),
        Err(_) => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}

impl IntoResponse for Event {
    fn into_response(self) -> Response {
        let headers = [
            ("Content-Type", "application/json".to_owned()),
            ("Lambda-Runtime-Aws-Request-Id", self.request_id),
            ("Lambda-Runtime-Deadline-Ms", self.deadline_ms.to_string()),
            ("Lambda-Runtime-Invoked-Function-Arn", self.function_arn),
            ("Lambda-Runtime-Trace-Id", self.trace_id),
        ];
        (headers, self.payload).into_response()
    }
}

async fn response(State(signals): Signals, Path(request_id): Path<String>, body: Bytes) -> Response {
    let at = Instant::now();
    tell(&signals, |verdict| Signal::Answer { at, request_id, answer: Ok(body), verdict }).await
}

async fn error(State(signals): Signals, Path(request_id): Path<String>, headers: HeaderMap, body: Bytes) -> Response {
    let at = Instant::now();
    let answer = Err(InvocationError::reported(&body, error_type(&headers)));
    tell(&signals, |verdict| Signal::Answer { at, request_id, answer, verdict }).await
}

async fn init_error(State(signals): Signals, headers: HeaderMap, body: Bytes) -> Response {
    let error = InvocationError::reported(&body, error_type(&headers));
    tell(&signals, |verdict| Signal::InitFailed { error, verdict }).await
}

fn error_type(headers: &HeaderMap) -> Option<&str> {
    headers.get("Lambda-Runtime-Function-Error-Type")?.to_str().ok()
}

/// Hands a signal to the environment and answers with its verdict.
async fn tell(signals: &mpsc::Sender<Signal>, signal: impl FnOnce(oneshot::Sender<Verdict>) -> Signal) -> Response {
    let (sender, verdict) = oneshot::channel();
    if signals.send(signal(sender)).await.is_err() {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let refused = |status: StatusCode, error_type: &str, message: &str| {
        let body = json!({"errorType": error_type, "errorMessage": message});
        (status, axum::Json(body)).into_response()
    };
    match verdict.await {
        Ok(Verdict::Accepted) => (StatusCode::ACCEPTED, axum::Json(json!({"status": "OK"}))).into_response(),
        Ok(Verdict::UnknownRequest) => refused(StatusCode::BAD_REQUEST, "InvalidRequestID", "Invalid request ID"),
        Ok(Verdict::WrongState) => {
            refused(StatusCode::FORBIDDEN, "InvalidStateTransition", "State transition is not allowed")
        }
        Err(_) => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}
