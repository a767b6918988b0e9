//! Connections of a gateway, and the requests on them.

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;

use futures_util::stream;
use http::header::{AUTHORIZATION, CONNECTION, HOST, HeaderMap, TRANSFER_ENCODING};
use http::request::Parts;
use http::uri::{Authority, Scheme, Uri};
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::sleep;
use tokio_rustls::TlsAcceptor;

use super::answers::Answer;
use super::call::Language;
use super::rules::{Fault, Rules, Side};
use crate::error::BedError;
use crate::tls::RotatingTls;

type Failure = Box<dyn std::error::Error + Send + Sync>;
type Body = UnsyncBoxBody<Bytes, Failure>;

/// The API server's limit of streams on a connection (kubernetes, `secure_serving.go`).
const STREAMS: u32 = 100;

#[derive(Debug)]
pub(super) struct GatewayServer {
    server: (Scheme, Authority),
    language: Language,
    /// Present: HTTP/2. Absent: plain HTTP/1.
    tls: Option<Arc<RotatingTls>>,
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    rules: Rules,
}

impl GatewayServer {
    pub(super) fn new(
        server: &str,
        language: Language,
        tls: Option<Arc<RotatingTls>>,
        server_ca: Option<&Path>,
        rules: Rules,
    ) -> Result<Self, BedError> {
        let uri: Uri = server.parse().expect("the world's addresses are URLs");
        let parts = uri.into_parts();
        let server = parts.scheme.zip(parts.authority).expect("the world's addresses are whole");
        Ok(Self { server, language, tls, client: client(server_ca)?, rules })
    }

    /// Serves a client's connection to its end.
    pub(super) async fn serve(self: Arc<Self>, stream: TcpStream) -> Result<(), Failure> {
        stream.set_nodelay(true)?;
        let go_away = Arc::new(Notify::new());
        let service = {
            let (gateway_server, go_away) = (Arc::clone(&self), Arc::clone(&go_away));
            service_fn(move |request| Arc::clone(&gateway_server).pass(request, Arc::clone(&go_away)))
        };
        let Some(tls) = &self.tls else {
            return Ok(http1::Builder::new().serve_connection(TokioIo::new(stream), service).await?);
        };
        let stream = TlsAcceptor::from(tls.config()).accept(stream).await?;
        let mut builder = http2::Builder::new(TokioExecutor::new());
        let connection = builder.max_concurrent_streams(STREAMS).serve_connection(TokioIo::new(stream), service);
        let mut connection = std::pin::pin!(connection);
        tokio::select! {
            ended = &mut connection => return Ok(ended?),
            () = go_away.notified() => connection.as_mut().graceful_shutdown(),
        }
        Ok(connection.await?)
    }

    /// Serves a request. An error resets its stream.
    async fn pass(
        self: Arc<Self>,
        request: Request<Incoming>,
        go_away: Arc<Notify>,
    ) -> Result<Response<Body>, Failure> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        match self.rules.strike(self.language.call(&parts, &body), parts.headers.get(AUTHORIZATION)) {
            None => self.forward(parts, body).await,
            Some(Fault::Answer(answer)) => Ok(whole(answer)),
            Some(Fault::TokenExpires) => Ok(whole(Answer::kubernetes(401))),
            Some(Fault::CutShort) => cut_short(self.forward(parts, body).await?).await,
            Some(Fault::NotData) => Ok(whole(Answer::page())),
            Some(Fault::Reset) => Err("reset by a rule".into()),
            Some(Fault::Silence) => std::future::pending().await,
            Some(Fault::Slow(time)) => {
                // The delay is the fault.
                sleep(time).await;
                self.forward(parts, body).await
            }
            Some(Fault::GoAway) => {
                go_away.notify_one();
                self.forward(parts, body).await
            }
            Some(Fault::Hold(Side::Before, held)) => {
                held.stand().await;
                self.forward(parts, body).await
            }
            Some(Fault::Hold(Side::After, held)) => {
                let answer = self.forward(parts, body).await;
                held.stand().await;
                answer
            }
            Some(Fault::Hold(Side::Instead, held)) => {
                held.stand().await;
                Err("held and reset by a rule".into())
            }
        }
    }

    /// Passes the request on to the server.
    async fn forward(&self, mut head: Parts, body: Bytes) -> Result<Response<Body>, Failure> {
        let (scheme, authority) = self.server.clone();
        let mut uri = head.uri.into_parts();
        (uri.scheme, uri.authority) = (Some(scheme), Some(authority));
        head.uri = Uri::from_parts(uri)?;
        head.version = http::Version::default();
        without_hop(&mut head.headers);
        // AWS' signature covers the host; over HTTP/2 the host stands in the URI.
        if self.language == Language::Kubernetes {
            head.headers.remove(HOST);
        }
        let answer = self.client.request(Request::from_parts(head, Full::new(body))).await?;
        let (mut head, body) = answer.into_parts();
        without_hop(&mut head.headers);
        Ok(Response::from_parts(head, body.map_err(Failure::from).boxed_unsync()))
    }
}

/// Removes headers of the connection.
fn without_hop(headers: &mut HeaderMap) {
    headers.remove(CONNECTION);
    headers.remove(TRANSFER_ENCODING);
    headers.remove("keep-alive");
}

fn whole(answer: Answer) -> Response<Body> {
    let never = |error: Infallible| match error {};
    answer.into_response().map(|text| Full::new(Bytes::from(text)).map_err(never).boxed_unsync())
}

/// Answers with half of the first piece, and resets the stream.
async fn cut_short(answer: Response<Body>) -> Result<Response<Body>, Failure> {
    let (head, mut body) = answer.into_parts();
    let first = body.frame().await.transpose()?.and_then(|frame| frame.into_data().ok()).unwrap_or_default();
    let half = first.slice(..first.len() / 2);
    let frames = stream::iter([Ok(Frame::data(half)), Err(Failure::from("cut short by a rule"))]);
    Ok(Response::from_parts(head, StreamBody::new(frames).boxed_unsync()))
}

/// A client that speaks HTTP/2 if the server offers it.
fn client(server_ca: Option<&Path>) -> Result<Client<HttpsConnector<HttpConnector>, Full<Bytes>>, BedError> {
    let mut roots = RootCertStore::empty();
    if let Some(path) = server_ca {
        let pem = std::fs::read(path).map_err(BedError::io(format!("read {}", path.display())))?;
        for certificate in CertificateDer::pem_slice_iter(&pem) {
            roots.add(certificate.expect("the world's authority is PEM")).expect("it is a certificate");
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring supports TLS 1.2 and 1.3")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_all_versions().build();
    Ok(Client::builder(TokioExecutor::new()).build(connector))
}
