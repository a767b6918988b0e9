//! A forward proxy, as a network has one on its way out: it passes requests on, and keeps what it was asked for.
//!
//! For plain HTTP only: it does not know CONNECT.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use http_body_util::BodyExt as _;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::error::BedError;
use crate::http_client;

/// A proxy that ends when dropped.
#[derive(Debug)]
pub struct ForwardProxy {
    address: SocketAddr,
    passed: Arc<Mutex<Vec<String>>>,
    server: JoinHandle<()>,
}

#[derive(Debug, Clone)]
struct Way {
    client: reqwest::Client,
    passed: Arc<Mutex<Vec<String>>>,
}

impl ForwardProxy {
    pub async fn start() -> Result<Self, BedError> {
        let opening = || BedError::io("open a forward proxy");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(opening())?;
        let address = listener.local_addr().map_err(opening())?;
        let passed = Arc::<Mutex<Vec<String>>>::default();
        let app =
            Router::new().fallback(pass).with_state(Way { client: http_client::client(), passed: Arc::clone(&passed) });
        let server = tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, app).await {
                eprintln!("a forward proxy has failed: {error}");
            }
        });
        Ok(Self { address, passed, server })
    }

    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What has passed so far, as `POST http://…`.
    #[must_use]
    pub fn passed(&self) -> Vec<String> {
        self.passed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for ForwardProxy {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn pass(State(way): State<Way>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let asked = format!("{} {}", head.method, head.uri);
    way.passed.lock().unwrap_or_else(PoisonError::into_inner).push(asked.clone());
    if head.uri.authority().is_none() {
        return (StatusCode::BAD_REQUEST, format!("{asked}: a proxy is asked for whole addresses")).into_response();
    }
    let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let onward = way.client.request(head.method, head.uri.to_string()).headers(head.headers).body(body);
    match onward.send().await {
        Ok(answer) => {
            let (status, headers) = (answer.status(), answer.headers().clone());
            let body = Body::from(answer.bytes().await.unwrap_or_default());
            (status, headers, body).into_response()
        }
        Err(error) => (StatusCode::BAD_GATEWAY, format!("{asked}: {error}")).into_response(),
    }
}
