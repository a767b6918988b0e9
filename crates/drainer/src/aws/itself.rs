//! Lambda: the function itself, invoked once more by a call that IAM allows to this function alone; and how many invocations
//! may run at once.
//!
//! Signed here: the SDK's client for Lambda brings much for two calls (docs/decisions/0011).

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
use serde_json::Value;
use tokio::time::timeout;

use crate::aws::CallError;

pub(crate) const INVOKE: &str = "lambda:InvokeFunction";
const ACCOUNT_SETTINGS: &str = "lambda:GetAccountSettings";

/// Lambda answers in milliseconds that it has queued an event.
const ATTEMPT: Duration = Duration::from_secs(5);

/// The way to the function itself.
#[derive(Debug)]
pub struct Itself {
    operation: Operation<HttpRequest, Value, ErrorMetadata>,
    /// Lambda's endpoint.
    url: String,
    region: String,
    /// The function's own.
    path: String,
    credentials: SharedCredentialsProvider,
}

impl Itself {
    /// The function of that name, at Lambda's endpoint in that Region.
    pub(crate) fn new(
        http: SharedHttpClient,
        credentials: SharedCredentialsProvider,
        (url, region): (String, &str),
        name: &str,
    ) -> Self {
        let operation = Operation::builder().service_name("lambda").operation_name("any");
        let operation = operation.http_client(http).endpoint_url(&url).no_auth().no_retry();
        let operation = operation.serializer(Ok::<HttpRequest, BoxError>).deserializer(answered).build();
        let path = format!("/2015-03-31/functions/{name}/invocations");
        Self { operation, url, region: region.to_owned(), path, credentials }
    }

    /// Has the function invoked with a payload, soon and by itself.
    pub(crate) async fn invoke(&self, payload: &str) -> Result<(), CallError> {
        self.of_itself("Event", payload).await.map_err(|error| CallError::new(INVOKE, error))
    }

    /// Asks whether it might be, as the doctor does: nothing is invoked.
    pub async fn ask(&self) -> Result<(), SdkError<ErrorMetadata, HttpResponse>> {
        self.of_itself("DryRun", "{}").await
    }

    /// How many invocations may run at once, of all functions of the account that have none reserved.
    pub async fn concurrency_limit(&self) -> Result<u64, CallError> {
        let settings = self.call("GET", "/2016-08-19/account-settings", &[], "").await;
        let settings = settings.map_err(|error| CallError::new(ACCOUNT_SETTINGS, error))?;
        let limit = settings["AccountLimit"]["UnreservedConcurrentExecutions"].as_u64();
        limit.ok_or_else(|| CallError::unanswered(ACCOUNT_SETTINGS, "the answer has no limit"))
    }

    async fn of_itself(&self, how: &str, payload: &str) -> Result<(), SdkError<ErrorMetadata, HttpResponse>> {
        let headers = [("content-type", "application/json"), ("x-amz-invocation-type", how)];
        self.call("POST", &self.path, &headers, payload).await.map(drop)
    }

    async fn call(
        &self,
        method: &str,
        path: &str,
        headers: &[(&'static str, &str)],
        body: &str,
    ) -> Result<Value, SdkError<ErrorMetadata, HttpResponse>> {
        let attempt = async {
            let credentials = self.credentials.provide_credentials().await.map_err(SdkError::construction_failure)?;
            let request = self.signed(method, path, headers, body, credentials);
            let request = request.map_err(SdkError::construction_failure)?;
            self.operation.invoke(request).await
        };
        match timeout(ATTEMPT, attempt).await {
            Ok(answered) => answered,
            Err(late) => Err(SdkError::timeout_error(late)),
        }
    }

    fn signed(
        &self,
        method: &str,
        path: &str,
        headers: &[(&'static str, &str)],
        body: &str,
        credentials: Credentials,
    ) -> Result<HttpRequest, BoxError> {
        let identity = credentials.into();
        let params = v4::SigningParams::builder().identity(&identity).region(&self.region).name("lambda");
        let params = params.time(SystemTime::now()).settings(SigningSettings::default()).build()?.into();
        let url = format!("{}{path}", self.url);
        let signable =
            SignableRequest::new(method, &url, headers.iter().copied(), SignableBody::Bytes(body.as_bytes()))?;
        let (signature, _) = sign(signable, &params)?.into_parts();
        let mut request = HttpRequest::new(SdkBody::from(body));
        request.set_method(method)?;
        request.set_uri(path)?;
        for (name, value) in headers {
            request.headers_mut().insert(*name, (*value).to_owned());
        }
        for header in signature.into_parts().0 {
            request.headers_mut().insert(header.name(), header.value().to_owned());
        }
        Ok(request)
    }
}

/// What Lambda answers, if anything. It says in a header what went wrong, and in the body why.
fn answered(response: &HttpResponse) -> Result<Value, OrchestratorError<ErrorMetadata>> {
    let said: Value = response.body().bytes().and_then(|body| serde_json::from_slice(body).ok()).unwrap_or_default();
    if response.status().is_success() {
        return Ok(said);
    }
    let mut error = ErrorMetadata::builder();
    if let Some(code) = response.headers().get("x-amzn-errortype").and_then(|code| code.split(':').next()) {
        error = error.code(code);
    }
    if let Some(message) = ["message", "Message"].into_iter().find_map(|key| said[key].as_str()) {
        error = error.message(message);
    }
    Err(OrchestratorError::operation(error.build()))
}
