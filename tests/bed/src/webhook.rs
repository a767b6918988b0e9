//! A webhook: a real HTTPS server that keeps what is posted to it, and answers as badly as a test wants.

use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::{Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::error::BedError;
use crate::tls_listener::{self, TlsListener};

/// Longer than any test lets a message take.
const WAIT: Duration = Duration::from_mins(2);

/// What is posted to, so that a test can look for it where it must not be.
pub const SECRET_PATH: &str = "/services/T0SPILLWAY/B0SECRET";

/// What it says to a post.
#[derive(Debug, Clone)]
pub enum Answer {
    /// As Slack does: 200 and `ok`.
    Ok,
    Status(u16),
    /// 429, and how many seconds it wants to be left alone.
    RetryAfter(u64),
    /// 302 to that address.
    Redirect(String),
    /// 200, and a body that does not end.
    Endless,
    /// Nothing for so long, then 200.
    Slow(Duration),
    /// Nothing for so long, then yes to the API server's question.
    Admits(Duration),
}

/// A request that came in.
#[derive(Debug, Clone)]
pub struct Post {
    pub method: String,
    pub path: String,
    /// By their names in lower case.
    pub headers: BTreeMap<String, String>,
    pub body: String,
}

impl Post {
    /// The body, which must be JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

/// A server that ends when dropped.
#[derive(Debug)]
pub struct Webhook {
    address: SocketAddr,
    shared: Arc<Shared>,
    server: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    posts: watch::Sender<Vec<Post>>,
    answers: Mutex<VecDeque<Answer>>,
    afterwards: Mutex<Answer>,
}

impl Webhook {
    /// One that answers well until told otherwise.
    pub async fn start() -> Result<Self, BedError> {
        let opening = || BedError::io("open a webhook");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(opening())?;
        let address = listener.local_addr().map_err(opening())?;
        let shared = Arc::new(Shared {
            posts: watch::Sender::default(),
            answers: Mutex::default(),
            afterwards: Mutex::new(Answer::Ok),
        });
        let listener = TlsListener::new(listener, "webhook")?;
        let app = Router::new().fallback(take).with_state(Arc::clone(&shared));
        let server = tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, app).await {
                eprintln!("a webhook has failed: {error}");
            }
        });
        Ok(Self { address, shared, server })
    }

    /// Its address on the network, as `127.0.0.1:1234`.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its URL, which is a secret: whoever has it can post.
    #[must_use]
    pub fn url(&self) -> String {
        format!("https://{}{SECRET_PATH}", self.address)
    }

    /// The authority that signed its certificate, as the API server takes one: base64 of PEM.
    #[must_use]
    pub fn ca() -> String {
        STANDARD.encode(tls_listener::authority())
    }

    /// The address of one at which nobody listens.
    pub async fn refused() -> Result<String, BedError> {
        // The port is nobody's again when the webhook is dropped.
        Ok(Self::start().await?.url())
    }

    /// From now on: each of the first once, in order, and then always the other.
    pub fn answers(&self, first: impl IntoIterator<Item = Answer>, afterwards: Answer) {
        *locked(&self.shared.answers) = first.into_iter().collect();
        *locked(&self.shared.afterwards) = afterwards;
    }

    /// What came so far.
    #[must_use]
    pub fn posts(&self) -> Vec<Post> {
        self.shared.posts.borrow().clone()
    }

    /// Waits until that many requests have come; answers all that have.
    pub async fn until_posted(&self, posts: usize) -> Result<Vec<Post>, BedError> {
        let mut seen = self.shared.posts.subscribe();
        match timeout(WAIT, seen.wait_for(|seen| seen.len() >= posts)).await {
            Ok(Ok(seen)) => Ok(seen.clone()),
            _ => Err(BedError::Waited {
                what: format!("post {posts} to the webhook"),
                waited_s: WAIT.as_secs(),
                last: format!("{:#?}", self.posts()),
            }),
        }
    }
}

impl Drop for Webhook {
    fn drop(&mut self) {
        self.server.abort();
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn take(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let text = |value: &axum::http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let post = Post {
        method: head.method.to_string(),
        path: head.uri.path().to_owned(),
        headers: head.headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect(),
        body: String::from_utf8_lossy(&body).into_owned(),
    };
    let body = post.body.clone();
    let answer = locked(&shared.answers).pop_front().unwrap_or_else(|| locked(&shared.afterwards).clone());
    shared.posts.send_modify(|posts| posts.push(post));
    match answer {
        Answer::Ok => "ok".into_response(),
        Answer::Status(status) => (status_of(status), "no_service").into_response(),
        Answer::RetryAfter(seconds) => {
            (StatusCode::TOO_MANY_REQUESTS, [(header::RETRY_AFTER, seconds.to_string())]).into_response()
        }
        Answer::Redirect(to) => (StatusCode::FOUND, [(header::LOCATION, to)]).into_response(),
        Answer::Endless => endless().into_response(),
        Answer::Slow(time) => {
            // The delay is the fault: nothing is waited for.
            sleep(time).await;
            "ok".into_response()
        }
        Answer::Admits(after) => {
            sleep(after).await;
            Json(admitted(&body)).into_response()
        }
    }
}

/// The answer to an admission review that lets it through.
fn admitted(review: &str) -> Value {
    let review: Value = serde_json::from_str(review).unwrap_or_default();
    let response = json!({"uid": review["request"]["uid"], "allowed": true});
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
}

fn status_of(status: u16) -> StatusCode {
    StatusCode::from_u16(status).expect("a test names a status that there is")
}

/// A body for as long as somebody reads it.
fn endless() -> Body {
    const CHUNK: &[u8] = &[b'x'; 64 * 1024];
    Body::from_stream(futures_util::stream::repeat_with(|| Ok::<_, std::io::Error>(Bytes::from_static(CHUNK))))
}
