//! Calls an AWS service: signs the request, sends it and reads the response.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use aws_credential_types::Credentials;
use aws_credential_types::provider::{ProvideCredentials as _, SharedCredentialsProvider};
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use aws_smithy_runtime::client::orchestrator::operation::Operation;
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::http::SharedHttpClient;
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse, OrchestratorError};
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::error::ErrorMetadata;
use aws_types::SdkConfig;
use aws_types::service_config::ServiceConfigKey;
use serde_json::Value;
use tokio::time::timeout;

use crate::error::CallError;
use crate::refusal;
use crate::service::Service;

/// Timeout of one call. AWS usually responds in milliseconds.
const ATTEMPT: Duration = Duration::from_secs(5);

pub type Failed = SdkError<ErrorMetadata, HttpResponse>;

#[derive(Debug, Clone)]
pub struct Caller {
    aws: Arc<SdkConfig>,
    http: SharedHttpClient,
    credentials: SharedCredentialsProvider,
    region: String,
}

#[derive(Debug, Clone)]
pub struct Call<'a> {
    pub service: Service,
    /// IAM action, such as `sns:Publish`.
    pub action: &'static str,
    /// AWS Region to call, or `None` for the function's own Region.
    pub region: Option<&'a str>,
    pub method: &'static str,
    /// URL path without characters that need percent-encoding.
    pub path: &'a str,
    pub headers: Vec<(&'static str, &'a str)>,
    pub body: &'a str,
}

impl<'a> Call<'a> {
    /// Creates a call in the AWS JSON protocol. `target` is the header `X-Amz-Target`, such as `AmazonSSM.GetParameter`.
    #[must_use]
    pub fn json(service: Service, action: &'static str, target: &'a str, body: &'a str) -> Self {
        let headers = vec![("content-type", "application/x-amz-json-1.1"), ("x-amz-target", target)];
        Self { service, action, region: None, method: "POST", path: "/", headers, body }
    }
}

impl Caller {
    /// Takes the HTTP client, credentials and Region from the SDK configuration. Fails if one of the three is missing.
    pub fn new(aws: &SdkConfig) -> Result<Self, &'static str> {
        Ok(Self {
            aws: Arc::new(aws.clone()),
            http: aws.http_client().ok_or("there is no HTTP client")?,
            credentials: aws.credentials_provider().ok_or("the function has no AWS credentials")?,
            region: aws.region().ok_or("AWS_REGION is not set")?.to_string(),
        })
    }

    pub async fn call(&self, call: &Call<'_>) -> Result<Vec<u8>, CallError> {
        self.attempt(call).await.map_err(|failed| CallError::new(call.action, failed))
    }

    pub async fn json(&self, call: &Call<'_>) -> Result<Value, CallError> {
        let answer = self.call(call).await?;
        serde_json::from_slice(&answer).map_err(|error| CallError::unanswered(call.action, error))
    }

    /// Makes a call. Unlike [`Self::call`], returns the SDK's error type.
    pub async fn attempt(&self, call: &Call<'_>) -> Result<Vec<u8>, Failed> {
        let attempt = async {
            let credentials = self.credentials.provide_credentials().await.map_err(SdkError::construction_failure)?;
            let region = call.region.unwrap_or(&self.region);
            let endpoint = self.endpoint(call.service, region);
            let request = signed(call, &endpoint, region, credentials, SystemTime::now());
            let operation = Operation::builder().service_name(call.service.name()).operation_name(call.action);
            let operation = operation.http_client(self.http.clone()).endpoint_url(&endpoint).no_auth().no_retry();
            let operation = operation.serializer(Ok::<HttpRequest, BoxError>).deserializer(answer).build();
            operation.invoke(request.map_err(SdkError::construction_failure)?).await
        };
        match timeout(ATTEMPT, attempt).await {
            Ok(answered) => answered,
            Err(late) => Err(SdkError::timeout_error(late)),
        }
    }

    /// Returns the configured endpoint (for SNS: `AWS_ENDPOINT_URL_SNS`), or else the default endpoint in `region`.
    fn endpoint(&self, service: Service, region: &str) -> String {
        let key = ServiceConfigKey::builder().service_id(service.id()).env("AWS_ENDPOINT_URL").profile("endpoint_url");
        let key = key.build().expect("it is complete");
        let named = self.aws.service_config().and_then(|config| config.load_config(key));
        named.map_or_else(
            || service.endpoint(region, self.aws.use_fips() == Some(true)),
            |named| named.trim_end_matches('/').to_owned(),
        )
    }
}

fn signed(
    call: &Call<'_>,
    endpoint: &str,
    region: &str,
    credentials: Credentials,
    now: SystemTime,
) -> Result<HttpRequest, BoxError> {
    let Call { service, method, path, body, ref headers, .. } = *call;
    let identity = credentials.into();
    let params = v4::SigningParams::builder().identity(&identity).region(region).name(service.name());
    let params = params.time(now).settings(SigningSettings::default()).build()?.into();
    let url = format!("{endpoint}{path}");
    let signable = SignableRequest::new(method, url, headers.iter().copied(), SignableBody::Bytes(body.as_bytes()))?;
    let (signature, _) = sign(signable, &params)?.into_parts();

    let mut request = HttpRequest::new(SdkBody::from(body));
    request.set_method(method)?;
    request.set_uri(path)?;
    request.headers_mut().insert("user-agent", concat!("spillway/", env!("CARGO_PKG_VERSION")));
    for (name, value) in headers {
        request.headers_mut().insert(*name, (*value).to_owned());
    }
    for header in signature.into_parts().0 {
        request.headers_mut().insert(header.name(), header.value().to_owned());
    }
    Ok(request)
}

fn answer(response: &HttpResponse) -> Result<Vec<u8>, OrchestratorError<ErrorMetadata>> {
    if response.status().is_success() {
        return Ok(response.body().bytes().unwrap_or_default().to_vec());
    }
    Err(OrchestratorError::operation(refusal::read(response)))
}

#[cfg(test)]
mod tests;
