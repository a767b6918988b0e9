//! Adds the bearer token to every request and renews the token before it expires.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use aws_credential_types::Credentials;
use http::header::{AUTHORIZATION, HeaderValue};
use http::{Request, Response, StatusCode};
use kube::client::Body;
use secrecy::ExposeSecret as _;
use spillway_core::cluster::ClusterName;
use tower::{BoxError, Service};

use crate::token::{self, TokenError};

/// Age at which a token is replaced. Five minutes of [`token::LIFETIME`] are left for slow requests and inexact clocks.
const REPLACE_AT_AGE: Duration = Duration::from_mins(10);
const _: () = assert!(REPLACE_AT_AGE.as_secs() < token::LIFETIME.as_secs());

/// Signs tokens for one cluster and caches the last token.
#[derive(Debug)]
pub(crate) struct Signer {
    cluster: ClusterName,
    region: String,
    credentials: Credentials,
    current: Mutex<Option<Signed>>,
}

#[derive(Debug, Clone)]
struct Signed {
    header: HeaderValue,
    at: SystemTime,
}

impl Signer {
    pub(crate) fn new(cluster: ClusterName, region: String, credentials: Credentials) -> Self {
        Self { cluster, region, credentials, current: Mutex::new(None) }
    }

    /// Returns the authorization header. If the cached token is too old at `now`, signs a new token.
    fn header(&self, now: SystemTime) -> Result<HeaderValue, TokenError> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        // A monotonic clock stops while Lambda freezes the process.
        let fresh =
            current.as_ref().filter(|signed| now.duration_since(signed.at).is_ok_and(|age| age < REPLACE_AT_AGE));
        if let Some(signed) = fresh {
            return Ok(signed.header.clone());
        }
        let token = token::sign_token(self.cluster.as_str(), &self.region, &self.credentials, now)?;
        let mut header = HeaderValue::try_from(format!("Bearer {}", token.expose_secret()))
            .expect("a base64url token is a legal header value");
        header.set_sensitive(true);
        *current = Some(Signed { header: header.clone(), at: now });
        Ok(header)
    }

    /// Drops a token that the API server refused, so that the next request signs a new token.
    fn refused(&self, header: &HeaderValue) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.as_ref().is_some_and(|signed| signed.header == header) {
            *current = None;
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Bearer<S> {
    inner: S,
    signer: Arc<Signer>,
}

impl<S> Bearer<S> {
    pub(crate) fn new(inner: S, signer: Arc<Signer>) -> Self {
        Self { inner, signer }
    }
}

impl<S, B> Service<Request<Body>> for Bearer<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
    B: Send + 'static,
{
    type Response = Response<B>;
    type Error = BoxError;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let header = match self.signer.header(SystemTime::now()) {
            Ok(header) => header,
            Err(error) => return Box::pin(std::future::ready(Err(error.into()))),
        };
        request.headers_mut().insert(AUTHORIZATION, header.clone());
        let answer = self.inner.call(request);
        let signer = Arc::clone(&self.signer);
        Box::pin(async move {
            let response = answer.await.map_err(Into::into)?;
            if response.status() == StatusCode::UNAUTHORIZED {
                signer.refused(&header);
            }
            Ok(response)
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    fn signer() -> Signer {
        let credentials = Credentials::new("AKIDEXAMPLE", "secret", None, None, "test");
        Signer::new(ClusterName::new("prod"), "us-east-1".to_owned(), credentials)
    }

    #[test]
    fn token_is_reused_for_ten_minutes_unless_refused() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_790_000_000);
        let later = |seconds| now + Duration::from_secs(seconds);
        for (at, is_refused, is_reused) in [
            (later(599), false, true),
            (later(600), false, false),
            (now - Duration::from_secs(1), false, false),
            (later(1), true, false),
        ] {
            let signer = signer();
            let first = signer.header(now).unwrap();
            if is_refused {
                signer.refused(&first);
            }
            assert_eq!(signer.header(at).unwrap() == first, is_reused, "{at:?}");
        }
    }

    #[test]
    fn token_header_is_marked_as_sensitive() {
        let header = signer().header(SystemTime::now()).unwrap();
        assert_eq!(format!("{header:?}"), "Sensitive");
    }
}
