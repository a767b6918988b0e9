//! A webhook: a real HTTPS server that keeps posts, and answers as a test wants.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use http_body_util::BodyExt as _;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::error::BedError;
use crate::tls::TlsListener;

/// Maximum wait for a post.
const WAIT: Duration = Duration::from_mins(2);

/// Secret path of the URL.
pub const SECRET_PATH: &str = "/services/T0SPILLWAY/B0SECRET";

/// Answer to a post.
#[derive(Debug, Clone)]
pub enum Answer {
    /// 200 and `ok`, as Slack answers.
    Ok,
    Status(u16),
}

/// A received request.
#[derive(Debug, Clone)]
pub struct Post {
    /// Headers by their names in lower case.
    pub headers: BTreeMap<String, String>,
    pub body: String,
}

impl Post {
    /// The body, which must be JSON.
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
    answer: Mutex<Answer>,
}

impl Webhook {
    /// A webhook that answers [`Answer::Ok`].
    pub async fn start() -> Result<Self, BedError> {
        let opening = || BedError::io("open a webhook");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(opening())?;
        let address = listener.local_addr().map_err(opening())?;
        let shared = Arc::new(Shared { posts: watch::Sender::default(), answer: Mutex::new(Answer::Ok) });
        let listener = TlsListener::new(listener, "webhook")?;
        let app = Router::new().fallback(receive).with_state(Arc::clone(&shared));
        let server = tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, app).await {
                eprintln!("a webhook has failed: {error}");
            }
        });
        Ok(Self { address, shared, server })
    }

    pub fn url(&self) -> String {
        format!("https://{}{SECRET_PATH}", self.address)
    }

    /// Sets the answer to all later posts.
    pub fn answers(&self, answer: Answer) {
        *self.shared.answer.lock().unwrap_or_else(PoisonError::into_inner) = answer;
    }

    pub fn posts(&self) -> Vec<Post> {
        self.shared.posts.borrow().clone()
    }

    /// Waits for that many posts; returns all.
    pub async fn until_posted(&self, posts: usize) -> Result<Vec<Post>, BedError> {
        let mut received = self.shared.posts.subscribe();
        match timeout(WAIT, received.wait_for(|received| received.len() >= posts)).await {
            Ok(Ok(received)) => Ok(received.clone()),
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

async fn receive(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let headers = head.headers.iter().map(|(name, value)| (name.to_string(), text(value.as_bytes()))).collect();
    let answer = shared.answer.lock().unwrap_or_else(PoisonError::into_inner).clone();
    shared.posts.send_modify(|posts| posts.push(Post { headers, body: text(&body) }));
    match answer {
        Answer::Ok => "ok".into_response(),
        Answer::Status(status) => {
            (StatusCode::from_u16(status).expect("a test names a real status"), "no_service").into_response()
        }
    }
}
