//! Four calls to four services of AWS, signed by AWS' own crate and sent by the client that the webhook has.
//!
//! Not by the SDK's clients: the one for Parameter Store is a quarter of aws-sdk-ec2, and the one for S3 builds that
//! anew with other features. docs/decisions/0007 has the figures. What the SDK would do beyond this, the queue does: it
//! brings back what failed.

use std::time::SystemTime;

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{
    PayloadChecksumKind, PercentEncodingMode, SignableBody, SignableRequest, SigningSettings, UriPathNormalizationMode,
    sign,
};
use aws_sigv4::sign::v4;
use reqwest::{Client, Method, StatusCode};
use serde_json::Value;

use crate::http;
use crate::retry::{MayPass, retried};

/// How much is read of an answer: a parameter has 8 KB at most, a secret 64.
const ANSWER: usize = 128 * 1024;

/// Whoever may call AWS as the function.
#[derive(Debug, Clone)]
pub(crate) struct Aws {
    client: Client,
    region: String,
    credentials: Credentials,
    fips: bool,
}

/// A service.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Service {
    /// As it stands in `AWS_ENDPOINT_URL_…`.
    pub(crate) id: &'static str,
    /// As it stands in its host's name and in signatures.
    pub(crate) host: &'static str,
}

/// One call.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) service: Service,
    /// Another Region than the function's.
    pub(crate) region: Option<&'a str>,
    /// The action, as IAM writes it.
    pub(crate) action: &'static str,
    pub(crate) method: Method,
    pub(crate) path: &'a str,
    pub(crate) headers: &'a [(&'static str, &'a str)],
    pub(crate) body: Vec<u8>,
}

/// A call that failed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AwsError {
    #[error("{action} got no answer: {why}")]
    NoAnswer { action: &'static str, why: String },
    #[error("{action} is answered {status}: {said}")]
    Refused { action: &'static str, status: StatusCode, said: String },
    #[error("{action} cannot be signed: {why}")]
    Unsigned { action: &'static str, why: String },
}

impl MayPass for AwsError {
    fn may_pass(&self) -> bool {
        match self {
            Self::NoAnswer { .. } => true,
            Self::Refused { status, said, .. } => {
                status.is_server_error() || *status == StatusCode::TOO_MANY_REQUESTS || said.starts_with("Throttl")
            }
            Self::Unsigned { .. } => false,
        }
    }
}

impl Aws {
    /// As Lambda's environment says, or what it lacks.
    pub(crate) fn from_environment(client: Client) -> Result<Self, String> {
        let variable = |name: &str| std::env::var(name).map_err(|_| format!("{name} is not set"));
        let token = std::env::var("AWS_SESSION_TOKEN").ok();
        let (key, secret) = (variable("AWS_ACCESS_KEY_ID")?, variable("AWS_SECRET_ACCESS_KEY")?);
        Ok(Self {
            client,
            region: variable("AWS_REGION")?,
            credentials: Credentials::new(key, secret, token, None, "environment"),
            fips: variable("AWS_USE_FIPS_ENDPOINT").is_ok_and(|value| value == "true"),
        })
    }

    /// Makes a call of the JSON protocol; `action` is its name for IAM, and its name for the service.
    pub(crate) async fn json(
        &self,
        service: Service,
        region: Option<&str>,
        action: (&'static str, &str),
        request: &Value,
    ) -> Result<Value, AwsError> {
        let (action, target) = action;
        let headers = [("content-type", "application/x-amz-json-1.1"), ("x-amz-target", target)];
        let body = request.to_string().into_bytes();
        let call = Call { service, region, action, method: Method::POST, path: "/", headers: &headers, body };
        let answer = self.call(&call).await?;
        serde_json::from_slice(&answer).map_err(|error| AwsError::NoAnswer { action, why: error.to_string() })
    }

    /// Makes a call; the answer's body.
    pub(crate) async fn call(&self, call: &Call<'_>) -> Result<Vec<u8>, AwsError> {
        retried(|| self.attempt(call)).await
    }

    async fn attempt(&self, call: &Call<'_>) -> Result<Vec<u8>, AwsError> {
        let action = call.action;
        let request = self
            .signed(call, SystemTime::now())
            .map_err(|error| AwsError::Unsigned { action, why: error.to_string() })?;
        let response =
            self.client.execute(request).await.map_err(|error| AwsError::NoAnswer { action, why: http::why(error) })?;
        let status = response.status();
        let answer = http::read(response, ANSWER).await;
        if status.is_success() {
            return Ok(answer);
        }
        Err(AwsError::Refused { action, status, said: explanation(&String::from_utf8_lossy(&answer)) })
    }

    fn signed(
        &self,
        call: &Call<'_>,
        now: SystemTime,
    ) -> Result<reqwest::Request, Box<dyn std::error::Error + Send + Sync>> {
        let region = call.region.unwrap_or(&self.region);
        let url = format!("{}{}", self.endpoint(call.service, region), call.path);
        // As S3 wants it, which the others take as well: our paths have nothing to encode or to normalize.
        let mut settings = SigningSettings::default();
        settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
        settings.percent_encoding_mode = PercentEncodingMode::Single;
        settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
        let identity = self.credentials.clone().into();
        let params = v4::SigningParams::builder()
            .identity(&identity)
            .region(region)
            .name(call.service.host)
            .time(now)
            .settings(settings)
            .build()?
            .into();
        let body = SignableBody::Bytes(&call.body);
        let signable = SignableRequest::new(call.method.as_str(), &url, call.headers.iter().copied(), body)?;
        let (instructions, _) = sign(signable, &params)?.into_parts();
        let request = ::http::Request::builder().method(&call.method).uri(&url);
        let request = call.headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let mut request = request.body(call.body.clone())?;
        instructions.apply_to_request_http1x(&mut request);
        Ok(request.try_into()?)
    }

    /// For tests, which call nothing.
    #[cfg(test)]
    pub(crate) fn of_nobody() -> Self {
        Self {
            client: http::client(None).expect("a client"),
            region: "eu-west-1".to_owned(),
            credentials: Credentials::new("AKIDEXAMPLE", "secret-key", Some("session-token".to_owned()), None, "test"),
            fips: false,
        }
    }

    fn endpoint(&self, service: Service, region: &str) -> String {
        let Service { id, host } = service;
        // In GovCloud these have one endpoint each, which is of FIPS without the name.
        let has_fips_alone = region.starts_with("us-gov-") && matches!(host, "sns" | "ssm");
        spillway_startup::aws::endpoint(id, host, region, self.fips && !has_fips_alone)
    }
}

/// The code and the first line of the message, in JSON or in XML. What follows in an answer to a bad signature is the
/// whole request, with the session's token.
fn explanation(answer: &str) -> String {
    let (code, message) = match serde_json::from_str::<Value>(answer) {
        Ok(json) => {
            let text = |name: &str| json.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
            let message = if json.get("message").is_some() { text("message") } else { text("Message") };
            (text("__type").rsplit('#').next().unwrap_or_default().to_owned(), message)
        }
        Err(_) => (between(answer, "<Code>", "</Code>"), between(answer, "<Message>", "</Message>")),
    };
    format!("{code}: {}", message.lines().next().unwrap_or_default())
}

fn between(text: &str, from: &str, to: &str) -> String {
    let after = text.split_once(from).map_or("", |(_, after)| after);
    after.split_once(to).map_or("", |(inside, _)| inside).to_owned()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn each_region_has_its_endpoint() {
        let endpoint = |aws: &Aws, host, region| aws.endpoint(Service { id: "TEST_OF_ENDPOINTS", host }, region);
        let (plain, fips) = (Aws::of_nobody(), Aws { fips: true, ..Aws::of_nobody() });
        assert_eq!(endpoint(&plain, "sns", "eu-west-1"), "https://sns.eu-west-1.amazonaws.com");
        assert_eq!(endpoint(&plain, "sns", "cn-north-1"), "https://sns.cn-north-1.amazonaws.com.cn");
        // As the SDK's endpoint rules have them.
        assert_eq!(endpoint(&fips, "sns", "us-east-2"), "https://sns-fips.us-east-2.amazonaws.com");
        for (host, expected) in [
            ("sns", "https://sns.us-gov-west-1.amazonaws.com"),
            ("ssm", "https://ssm.us-gov-west-1.amazonaws.com"),
            ("secretsmanager", "https://secretsmanager-fips.us-gov-west-1.amazonaws.com"),
            ("s3", "https://s3-fips.us-gov-west-1.amazonaws.com"),
        ] {
            assert_eq!(endpoint(&fips, host, "us-gov-west-1"), expected);
        }
    }

    #[test]
    fn a_call_is_signed_for_its_service_and_region_with_its_body() {
        let call = Call {
            service: Service { id: "TEST_OF_SIGNING", host: "s3" },
            region: Some("eu-central-1"),
            action: "s3:PutObject",
            method: Method::PUT,
            path: "/receipts-of-us/a/b.json",
            headers: &[("content-type", "application/json")],
            body: b"{}".to_vec(),
        };
        let request =
            Aws::of_nobody().signed(&call, UNIX_EPOCH + Duration::from_secs(1_795_230_720)).expect("a request");
        assert_eq!(request.url().as_str(), "https://s3.eu-central-1.amazonaws.com/receipts-of-us/a/b.json");
        let header = |name: &str| request.headers()[name].to_str().expect("text").to_owned();
        // sha256 of "{}".
        assert_eq!(header("x-amz-content-sha256"), "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a");
        let authorization = header("authorization");
        assert!(authorization.contains("/eu-central-1/s3/aws4_request"), "{authorization}");
        assert!(authorization.contains("content-type;host;"), "{authorization}");
    }

    #[test]
    fn what_aws_says_is_told_in_a_line_and_without_the_request() {
        let json = r#"{"__type":"com.amazon.coral#InvalidSignatureException","message":"The signature does not match.\n\nx-amz-security-token:abc"}"#;
        assert_eq!(explanation(json), "InvalidSignatureException: The signature does not match.");
        let xml = "<ErrorResponse><Error><Type>Sender</Type><Code>NotFound</Code><Message>Topic does not exist</Message></Error></ErrorResponse>";
        assert_eq!(explanation(xml), "NotFound: Topic does not exist");
    }

    #[test]
    fn nobody_reads_the_credentials_in_a_debug_line() {
        let debug = format!("{:?}", Aws::of_nobody());
        assert!(!debug.contains("secret-key") && !debug.contains("session-token"), "{debug}");
    }
}
