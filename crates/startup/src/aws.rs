//! Configuration of all AWS clients from the environment variables of the Lambda function.
//!
//! The SDK's own loader would also read profiles and instance metadata, and would add 28 crates.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_smithy_http_client::tls;
use aws_smithy_runtime_api::client::behavior_version::BehaviorVersion;
use aws_smithy_runtime_api::client::http::{HttpClient as _, SharedHttpClient, http_client_fn};
use aws_smithy_types::retry::RetryConfig;
use aws_smithy_types::timeout::TimeoutConfig;
use aws_types::SdkConfig;
use aws_types::region::Region;
use aws_types::service_config::{LoadServiceConfig, ServiceConfigKey};

/// Timeout of one attempt of an AWS call. The SDK makes up to three attempts.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(5);
const CALL_TIMEOUT: Duration = Duration::from_secs(12);

/// Connections shared by all clients of a configuration.
///
/// Each invocation begins with new connections. While Lambda freezes the process, a firewall may forget an idle connection. The
/// next call on this connection would fail only after `ATTEMPT_TIMEOUT`.
#[derive(Debug, Clone)]
pub struct Connections(Arc<Mutex<SharedHttpClient>>);

impl Connections {
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(Mutex::new(no_connections())))
    }

    /// Replaces the connection pool. Calls in progress keep their connections.
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

/// Reads the configuration from environment variables. Fails with the name of a missing variable.
pub fn configuration(connections: &Connections) -> Result<SdkConfig, String> {
    by_variables(std::env::vars(), connections)
}

fn by_variables(
    variables: impl Iterator<Item = (String, String)>,
    connections: &Connections,
) -> Result<SdkConfig, String> {
    let is_set = |(name, value): &(String, String)| name.starts_with("AWS_") && !value.trim().is_empty();
    let mut variables: BTreeMap<String, String> = variables.filter(is_set).collect();
    let mut needed = |name: &str| variables.remove(name).ok_or_else(|| format!("{name} is not set"));
    let region = needed("AWS_REGION")?;
    let (key, secret) = (needed("AWS_ACCESS_KEY_ID")?, needed("AWS_SECRET_ACCESS_KEY")?);
    let token = variables.remove("AWS_SESSION_TOKEN");
    let credentials = Credentials::new(key, secret, token, None, "EnvironmentVariable");
    Ok(SdkConfig::builder()
        .behavior_version(BehaviorVersion::v2026_01_12())
        .region(Region::new(region))
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .use_fips(variables.get("AWS_USE_FIPS_ENDPOINT").is_some_and(|value| value == "true"))
        .service_config(Endpoints::of(variables))
        .retry_config(RetryConfig::standard())
        .timeout_config(timeouts())
        .sleep_impl(aws_smithy_async::rt::sleep::TokioSleep::new())
        .http_client(connections.client())
        .build())
}

#[must_use]
pub fn timeouts() -> TimeoutConfig {
    TimeoutConfig::builder().operation_attempt_timeout(ATTEMPT_TIMEOUT).operation_timeout(CALL_TIMEOUT).build()
}

/// Endpoint URLs of AWS services, from `AWS_ENDPOINT_URL_<SERVICE>`, else from `AWS_ENDPOINT_URL`.
#[derive(Debug)]
struct Endpoints(BTreeMap<String, String>);

impl Endpoints {
    /// Keeps only the variables with endpoint URLs, because other variables hold secrets.
    fn of(mut variables: BTreeMap<String, String>) -> Self {
        variables.retain(|name, _| name.starts_with("AWS_ENDPOINT_URL"));
        Self(variables)
    }
}

impl LoadServiceConfig for Endpoints {
    fn load_config(&self, key: ServiceConfigKey<'_>) -> Option<String> {
        let service = key.service_id().replace(' ', "_").to_uppercase();
        self.0.get(&format!("{}_{service}", key.env())).or_else(|| self.0.get(key.env())).cloned()
    }
}

#[cfg(test)]
mod tests {
    use aws_credential_types::provider::ProvideCredentials as _;

    use super::*;

    const LAMBDAS: [(&str, &str); 3] =
        [("AWS_REGION", "eu-west-1"), ("AWS_ACCESS_KEY_ID", "ASIA1"), ("AWS_SECRET_ACCESS_KEY", "secret")];

    fn configured(more: &[(&str, &str)]) -> Result<SdkConfig, String> {
        let variables = LAMBDAS.iter().chain(more).map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        by_variables(variables, &Connections::new())
    }

    #[tokio::test]
    async fn variables_set_credentials_region_and_fips() {
        for (token, expected) in [("session", Some("session")), ("", None), (" ", None)] {
            let configuration = configured(&[("AWS_SESSION_TOKEN", token), ("SPILLWAY_STACK", "s")]).unwrap();
            let credentials = configuration.credentials_provider().unwrap().provide_credentials().await.unwrap();
            let keys = (credentials.access_key_id(), credentials.secret_access_key(), credentials.session_token());
            assert_eq!(keys, ("ASIA1", "secret", expected));
            assert_eq!(configuration.region().map(AsRef::as_ref), Some("eu-west-1"));
            assert_eq!(configuration.use_fips(), Some(false));
        }
        assert_eq!(configured(&[("AWS_USE_FIPS_ENDPOINT", "true")]).unwrap().use_fips(), Some(true));
    }

    #[test]
    fn missing_variable_is_named() {
        for (missing, _) in LAMBDAS {
            let variables = LAMBDAS.iter().filter(|(name, _)| *name != missing);
            let variables = variables.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            let error = by_variables(variables, &Connections::new()).err();
            assert_eq!(error, Some(format!("{missing} is not set")));
        }
    }

    #[test]
    fn endpoint_of_a_service_wins_over_the_common_one() {
        let endpoint = |configuration: &SdkConfig, service: &'static str| {
            let key = ServiceConfigKey::builder().service_id(service).env("AWS_ENDPOINT_URL").profile("endpoint_url");
            configuration.service_config().unwrap().load_config(key.build().unwrap())
        };
        let of_one = ("AWS_ENDPOINT_URL_ELASTIC_LOAD_BALANCING_V2", "https://elb.internal");
        let alone = configured(&[of_one]).unwrap();
        assert_eq!(endpoint(&alone, "Elastic Load Balancing v2").as_deref(), Some("https://elb.internal"));
        assert_eq!(endpoint(&alone, "EC2"), None);
        let both = configured(&[of_one, ("AWS_ENDPOINT_URL", "http://bed")]).unwrap();
        assert_eq!(endpoint(&both, "Elastic Load Balancing v2").as_deref(), Some("https://elb.internal"));
        assert_eq!(endpoint(&both, "EC2").as_deref(), Some("http://bed"));
        assert!(!format!("{:?}", configured(&[("AWS_SESSION_TOKEN", "session")]).unwrap()).contains("session"));
    }
}
