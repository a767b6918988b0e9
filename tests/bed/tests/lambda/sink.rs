//! A failure queue that keeps what it is sent.

use std::sync::{Arc, Mutex};

use axum::extract::State;
use axum::routing::post;
use axum::{Json, Router};
use serde_json::Value;
use tokio::net::TcpListener;

pub(crate) struct Sink {
    address: std::net::SocketAddr,
    bodies: Arc<Mutex<Vec<Value>>>,
}

impl Sink {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let bodies = Arc::<Mutex<Vec<Value>>>::default();
        let keep = |State(bodies): State<Arc<Mutex<Vec<Value>>>>, Json(body): Json<Value>| async move {
            bodies.lock().unwrap().push(body);
            Json(Value::Null)
        };
        let router = Router::new().route("/bed/failures", post(keep)).with_state(Arc::clone(&bodies));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, bodies }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn bodies(&self) -> Vec<Value> {
        self.bodies.lock().unwrap().clone()
    }
}
