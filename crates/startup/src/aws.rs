//! What every AWS client is made with: what Lambda put into the environment, one TLS stack, our timeouts.
//!
//! The SDK's own loader would also look into profiles, ask the instance's metadata, a container's and STS. A function
//! has none of these, and the code for them was a tenth of the package (0.5 of 5.05 MB, zipped).

use std::time::Duration;

use aws_config::environment::EnvironmentVariableCredentialsProvider;
use aws_config::retry::RetryConfig;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_smithy_http_client::tls;
use aws_smithy_types::timeout::TimeoutConfig;
use aws_types::service_config::{LoadServiceConfig, ServiceConfigKey};

/// No call may hang: a healthy one takes milliseconds, and the SDK makes up to three attempts.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(5);
const CALL_TIMEOUT: Duration = Duration::from_secs(12);

/// The configuration, or what the environment lacks.
pub fn configuration() -> Result<SdkConfig, &'static str> {
    let region = std::env::var("AWS_REGION").map_err(|_| "AWS_REGION is not set")?;
    let http = aws_smithy_http_client::Builder::new()
        .tls_provider(tls::Provider::Rustls(tls::rustls_provider::CryptoMode::Ring))
        .build_https();
    Ok(SdkConfig::builder()
        .behavior_version(BehaviorVersion::v2026_01_12())
        .region(Region::new(region))
        .credentials_provider(SharedCredentialsProvider::new(EnvironmentVariableCredentialsProvider::new()))
        .use_fips(std::env::var("AWS_USE_FIPS_ENDPOINT").is_ok_and(|value| value == "true"))
        .service_config(Endpoints)
        .retry_config(RetryConfig::standard())
        .timeout_config(timeouts())
        .sleep_impl(aws_smithy_async::rt::sleep::TokioSleep::new())
        .http_client(http)
        .build())
}

/// The timeouts of every call.
#[must_use]
pub fn timeouts() -> TimeoutConfig {
    TimeoutConfig::builder().operation_attempt_timeout(ATTEMPT_TIMEOUT).operation_timeout(CALL_TIMEOUT).build()
}

/// `AWS_ENDPOINT_URL_<SERVICE>`, else `AWS_ENDPOINT_URL`: interface endpoints with names of their own, and the test bed.
#[derive(Debug)]
struct Endpoints;

impl LoadServiceConfig for Endpoints {
    fn load_config(&self, key: ServiceConfigKey<'_>) -> Option<String> {
        let service = key.service_id().replace(' ', "_").to_uppercase();
        std::env::var(format!("{}_{service}", key.env())).or_else(|_| std::env::var(key.env())).ok()
    }
}
