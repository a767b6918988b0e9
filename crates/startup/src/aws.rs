//! What every AWS client is made with: what Lambda put into the environment, one TLS stack, our timeouts.
//!
//! The SDK's own loader would also look into profiles, ask the instance's metadata, a container's and STS. A function
//! has none of these, and the code for them was a tenth of the package (0.5 of 5.05 MB, zipped).

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_config::environment::EnvironmentVariableCredentialsProvider;
use aws_config::retry::RetryConfig;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_smithy_http_client::tls;
use aws_smithy_runtime_api::client::http::{HttpClient as _, SharedHttpClient, http_client_fn};
use aws_smithy_types::timeout::TimeoutConfig;
use aws_types::service_config::{LoadServiceConfig, ServiceConfigKey};

/// No call may hang: a healthy one takes milliseconds, and the SDK makes up to three attempts.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(5);
const CALL_TIMEOUT: Duration = Duration::from_secs(12);

/// The connections that all clients of a configuration share.
///
/// Lambda freezes the process between two invocations, for an hour or more, and its clock with it. Meanwhile a firewall on the way
/// may forget an idle connection and drop what is sent on it. The pool takes such a connection for a fresh one, and the first call
/// of a notice would wait for [`ATTEMPT_TIMEOUT`]. So each invocation begins with none. That costs a warm one a handshake for each
/// service that it calls; one of them, EC2's, comes before the claim (`scenarios/thawed.rs` counts).
#[derive(Debug, Clone)]
pub struct Connections(Arc<Mutex<SharedHttpClient>>);

impl Connections {
    /// There is none yet.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(Mutex::new(no_connections())))
    }

    /// Leaves those that there are to whoever still uses them. Each call from now on has a new one, or one that is made
    /// after now.
    pub fn renew(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = no_connections();
    }

    fn client(&self) -> SharedHttpClient {
        let current = Arc::clone(&self.0);
        http_client_fn(move |settings, components| {
            let client = current.lock().unwrap_or_else(PoisonError::into_inner).clone();
            client.http_connector(settings, components)
        })
    }
}

impl Default for Connections {
    fn default() -> Self {
        Self::new()
    }
}

fn no_connections() -> SharedHttpClient {
    aws_smithy_http_client::Builder::new()
        .tls_provider(tls::Provider::Rustls(tls::rustls_provider::CryptoMode::Ring))
        .build_https()
}

/// The configuration, or what the environment lacks.
pub fn configuration(connections: &Connections) -> Result<SdkConfig, &'static str> {
    let region = std::env::var("AWS_REGION").map_err(|_| "AWS_REGION is not set")?;
    Ok(SdkConfig::builder()
        .behavior_version(BehaviorVersion::v2026_01_12())
        .region(Region::new(region))
        .credentials_provider(SharedCredentialsProvider::new(EnvironmentVariableCredentialsProvider::new()))
        .use_fips(std::env::var("AWS_USE_FIPS_ENDPOINT").is_ok_and(|value| value == "true"))
        .service_config(Endpoints)
        .retry_config(RetryConfig::standard())
        .timeout_config(timeouts())
        .sleep_impl(aws_smithy_async::rt::sleep::TokioSleep::new())
        .http_client(connections.client())
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
