//! The Runtime API of one environment, as AWS documents it. Accepted requests of the process become [`Signal`]s.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::outcome::InvocationError;

/// Lambda's limit of 6 MB for an answer, and a little for its envelope.
const LARGEST_ANSWER: usize = 6 * 1024 * 1024 + 100;

#[derive(Debug)]
pub(super) enum Signal {
    /// The process is idle and waits for an event.
    Poll {
        at: Instant,
        reply: oneshot::Sender<Event>,
    },
    /// The process answers its event.
    Answer {
        at: Instant,
        answer: Result<Bytes, InvocationError>,
    },
    InitFailed(InvocationError),
}

/// State of the process. It decides which requests are accepted.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Init,
    /// An event of this request id is not answered yet.
    Invocation(String),
    Idle,
}

/// An event with Lambda's headers.
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
    shared: Arc<Shared>,
    server: JoinHandle<io::Result<()>>,
}

#[derive(Debug)]
struct Shared {
    phase: Mutex<Phase>,
    signals: mpsc::UnboundedSender<Signal>,
}

impl RuntimeApi {
    /// Serves on a free port until dropped.
    pub(super) async fn start() -> io::Result<(Self, mpsc::UnboundedReceiver<Signal>)> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let (sender, signals) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared { phase: Mutex::new(Phase::Init), signals: sender });
        let routes = Router::new()
            .route("/invocation/next", get(next))
            .route("/invocation/{request_id}/response", post(response))
            .route("/invocation/{request_id}/error", post(error))
            .route("/init/error", post(init_error))
            .layer(DefaultBodyLimit::max(LARGEST_ANSWER))
            .with_state(Arc::clone(&shared));
        let app = Router::new().nest("/2018-06-01/runtime", routes);
        let server = tokio::spawn(async move { axum::serve(listener, app).await });
        Ok((Self { address, shared, server }, signals))
    }

    pub(super) fn set_phase(&self, phase: Phase) {
        *self.shared.phase.lock().unwrap_or_else(PoisonError::into_inner) = phase;
    }
}

impl Drop for RuntimeApi {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn next(State(shared): State<Arc<Shared>>) -> Response {
    let (reply, event) = oneshot::channel();
    // Without an environment the process is about to be killed.
    let _ = shared.signals.send(Signal::Poll { at: Instant::now(), reply });
    event.await.map_or_else(|_| StatusCode::SERVICE_UNAVAILABLE.into_response(), Event::into_response)
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

async fn response(State(shared): State<Arc<Shared>>, Path(request_id): Path<String>, body: Bytes) -> Response {
    shared.answer(request_id, Ok(body))
}

async fn error(
    State(shared): State<Arc<Shared>>,
    Path(request_id): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    shared.answer(request_id, Err(reported(&headers, &body)))
}

async fn init_error(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> Response {
    let error = reported(&headers, &body);
    let refusal = (StatusCode::FORBIDDEN, "InvalidStateTransition", "State transition is not allowed");
    shared.accept(&Phase::Init, Signal::InitFailed(error), refusal)
}

fn reported(headers: &HeaderMap, body: &[u8]) -> InvocationError {
    let error_type = headers.get("Lambda-Runtime-Function-Error-Type").and_then(|value| value.to_str().ok());
    InvocationError::reported(body, error_type)
}

impl Shared {
    fn answer(&self, request_id: String, answer: Result<Bytes, InvocationError>) -> Response {
        let signal = Signal::Answer { at: Instant::now(), answer };
        let refusal = (StatusCode::BAD_REQUEST, "InvalidRequestID", "Invalid request ID");
        self.accept(&Phase::Invocation(request_id), signal, refusal)
    }

    /// Accepts a signal in its phase once, and refuses it in any other phase.
    fn accept(&self, phase: &Phase, signal: Signal, refusal: (StatusCode, &str, &str)) -> Response {
        let mut now = self.phase.lock().unwrap_or_else(PoisonError::into_inner);
        if *now != *phase {
            let (status, error_type, message) = refusal;
            return (status, Json(json!({"errorType": error_type, "errorMessage": message}))).into_response();
        }
        *now = Phase::Idle;
        let _ = self.signals.send(signal);
        (StatusCode::ACCEPTED, Json(json!({"status": "OK"}))).into_response()
    }
}
