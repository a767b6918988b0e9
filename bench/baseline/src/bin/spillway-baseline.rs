//! Baseline of a drain: posts evictions over one HTTP/2 connection, all at once and again after a 429. It has no product code and no
//! Kubernetes library.

use std::collections::BTreeMap;
use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::client::conn::http2::{self, SendRequest};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE};
use hyper::{Request, StatusCode, Uri};
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use serde::Deserialize;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tower::ServiceExt as _;

/// `Retry-After` of the API server when its queues are full.
const RETRY_AFTER: Duration = Duration::from_secs(1);

type Failure = Box<dyn Error + Send + Sync>;

/// Input on stdin.
#[derive(Debug, Deserialize)]
struct Work {
    endpoint: String,
    /// PEM.
    ca: String,
    token: String,
    evictions: Vec<Eviction>,
}

#[derive(Debug, Deserialize)]
struct Eviction {
    path: String,
    body: String,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let work: Work = serde_json::from_reader(io::stdin())?;
    let requests = work.evictions.iter().map(|eviction| request(&work, eviction)).collect::<Result<Vec<_>, _>>()?;

    let connection = connect(&work).await?;
    let mut posts = JoinSet::new();
    for request in requests {
        posts.spawn(post(connection.clone(), request));
    }
    // Count of each status but 429.
    let mut answers: BTreeMap<u16, usize> = BTreeMap::new();
    while let Some(status) = posts.join_next().await {
        *answers.entry(status??).or_default() += 1;
    }
    serde_json::to_writer(io::stdout(), &answers)?;
    Ok(())
}

/// Opens the connection.
async fn connect(work: &Work) -> Result<SendRequest<Full<Bytes>>, Failure> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(work.ca.as_bytes()) {
        roots.add(certificate?)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    let https = HttpsConnectorBuilder::new().with_tls_config(tls).https_only().enable_http2().wrap_connector(tcp);
    let stream = https.oneshot(work.endpoint.parse::<Uri>()?).await?;
    let (connection, driver) = http2::handshake(TokioExecutor::new(), stream).await?;
    tokio::spawn(driver);
    Ok(connection)
}

fn request(work: &Work, eviction: &Eviction) -> Result<Request<Full<Bytes>>, hyper::http::Error> {
    Request::post(format!("{}{}", work.endpoint, eviction.path))
        .header(AUTHORIZATION, format!("Bearer {}", work.token))
        .header(CONTENT_TYPE, "application/json")
        .body(Full::from(eviction.body.clone()))
}

async fn post(mut connection: SendRequest<Full<Bytes>>, request: Request<Full<Bytes>>) -> hyper::Result<u16> {
    loop {
        connection.ready().await?;
        let answer = connection.send_request(request.clone()).await?;
        let status = answer.status();
        answer.into_body().collect().await?;
        if status != StatusCode::TOO_MANY_REQUESTS {
            return Ok(status.as_u16());
        }
        sleep(RETRY_AFTER).await;
    }
}
