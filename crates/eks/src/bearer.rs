//! Puts the bearer token on every request, and a new one before the old one grows too old.

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

/// A token is replaced at this age: well before [`token::LIFETIME`], so that neither a slow
/// request nor a clock that is minutes off meets its end.
const REPLACE_AT_AGE: Duration = Duration::from_mins(10);
const _: () = assert!(REPLACE_AT_AGE.as_secs() < token::LIFETIME.as_secs());

/// Signs tokens for one cluster and keeps the last one.
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

    /// The header as of `now`. The wall clock decides, not a monotonic one: the latter stands
    /// still while Lambda has the process frozen.
    fn header(&self, now: SystemTime) -> Result<HeaderValue, TokenError> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
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

    /// Forgets a token that the API server refused, so that the next request signs a new one.
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
    fn a_token_is_used_again_until_it_is_ten_minutes_old() {
        let signer = signer();
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_790_000_000);
        let first = signer.header(now).unwrap();
        assert_eq!(signer.header(now + Duration::from_secs(599)).unwrap(), first);
        assert_ne!(signer.header(now + Duration::from_secs(600)).unwrap(), first);
    }

    #[test]
    fn a_clock_that_jumps_back_signs_a_new_token() {
        let signer = signer();
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_790_000_000);
        let first = signer.header(now).unwrap();
        assert_ne!(signer.header(now - Duration::from_secs(1)).unwrap(), first);
    }

    #[test]
    fn a_refused_token_is_not_used_again() {
        let signer = signer();
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_790_000_000);
        let first = signer.header(now).unwrap();
        signer.refused(&first);
        assert_ne!(signer.header(now + Duration::from_secs(1)).unwrap(), first);
    }

    #[test]
    fn the_token_is_marked_so_that_no_log_prints_it() {
        let header = signer().header(SystemTime::now()).unwrap();
        assert_eq!(format!("{header:?}"), "Sensitive");
    }
}
