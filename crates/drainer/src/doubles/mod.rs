//! Drain function with test doubles of AWS, the API server and the log. Other crates use it with the feature `test-support`.
//!
//! * `aws`: double of AWS
//! * `script`: expected calls and their answers
//! * `scripted`: context whose AWS and API server follow scripts

pub mod aws;
pub mod script;
pub mod scripted;

use std::fmt;
use std::sync::Arc;

use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_smithy_runtime::client::retries::{RetryPartition, TokenBucket};
use aws_smithy_types::retry::RetryConfig;
use aws_smithy_types::timeout::TimeoutConfig;
use aws_types::SdkConfig;
use aws_types::region::Region;
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use serde_json::Value;
use spillway_aws_call::Caller;
use spillway_core::clock::Clock;
use spillway_core::invocation::Invocation;
use spillway_eks::{Cluster, Clusters, ConnectError, Connection, DescribeLimit, StoredClusters};
use spillway_notice::Home;
use spillway_receipt::Receipt;
use spillway_settings::{Schedules, Settings};

use crate::aws::itself::Itself;
use crate::aws::queue::Queue;
use crate::context::Context;
use crate::context::cluster::{Access, ClusterConnector};
use crate::context::log::Log;
use crate::handler;
use crate::later::{FunctionName, Scheduler};
use aws::AwsDouble;

/// Region of the function in tests.
pub const REGION: &str = "us-east-1";

/// Drain function with doubles.
#[derive(Debug)]
pub struct Function(Context);

/// Invocation in a test.
#[derive(Debug)]
pub struct TestInvocation {
    /// Lambda's request id, the same for all attempts at an event.
    pub request_id: String,
    pub home: Home,
    /// Start on the function's clock.
    pub began: Timestamp,
    /// Lambda's timeout.
    pub lasts: SignedDuration,
}

/// Attempts of the SDK at a failing call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SdkAttempts {
    /// Single attempt without timeout: a double receives only the function's own calls.
    Once,
    /// Same as on Lambda.
    AsOnLambda,
}

impl Function {
    /// Makes the function. `aws` answers calls to AWS, `cluster` makes the client for an endpoint, and `log` receives receipts and
    /// metrics.
    pub fn new(
        settings: Settings,
        aws: &AwsDouble,
        cluster: impl Fn(&str) -> Client + Send + Sync + 'static,
        log: impl Fn(&str) + Send + Sync + 'static,
    ) -> Self {
        Self(context(settings, aws, SdkAttempts::AsOnLambda, cluster, Log::new(log)))
    }

    /// Handles an event. Fails with the failure's text.
    pub async fn handle(&self, event: Value, invocation: TestInvocation) -> Result<Receipt, String> {
        let TestInvocation { request_id, home, began, lasts } = invocation;
        let mut invocation = Invocation::until(began + lasts, &request_id, Clock::starting_at(began));
        invocation.home = home;
        handler::handle(&self.0, event, &invocation).await.map_err(|failure| failure.text())
    }
}

/// Makes the context for tests.
pub(crate) fn context(
    mut settings: Settings,
    aws: &AwsDouble,
    attempts: SdkAttempts,
    cluster: impl Fn(&str) -> Client + Send + Sync + 'static,
    log: Log,
) -> Context {
    let (retries, timeouts) = match attempts {
        SdkAttempts::Once => (RetryConfig::disabled(), TimeoutConfig::disabled()),
        SdkAttempts::AsOnLambda => (RetryConfig::standard(), spillway_startup::aws::timeouts()),
    };
    // A token bucket for each test: the SDK shares one in the process.
    let partition = RetryPartition::custom("this test").token_bucket(TokenBucket::default()).build();
    macro_rules! client {
        ($sdk:ident) => {
            client!($sdk, retries.clone())
        };
        ($sdk:ident, $retries:expr) => {
            $sdk::Client::from_conf(
                $sdk::Config::builder()
                    .behavior_version_latest()
                    .region($sdk::config::Region::new(REGION))
                    // Signing would take half of the time.
                    .allow_no_auth()
                    .retry_config($retries)
                    .retry_partition(partition.clone())
                    .timeout_config(timeouts.clone())
                    .http_client(aws.clone())
                    .build(),
            )
        };
    }
    settings.schedules = Some(Schedules {
        group: "spillway".to_owned(),
        role_arn: "arn:aws:iam::123456789012:role/schedules".to_owned(),
        failures_arn: "arn:aws:sqs:us-east-1:123456789012:failures".to_owned(),
    });
    let credentials = SharedCredentialsProvider::new(Credentials::new("id", "secret", None, None, "test"));
    let by_hand = SdkConfig::builder().http_client(aws.clone()).credentials_provider(credentials.clone());
    let by_hand = Caller::new(&by_hand.region(Region::new(REGION)).build()).expect("it has all that it takes");
    let stored = (!settings.stack.is_empty()).then(|| StoredClusters::new(by_hand.clone(), &settings.stack, REGION));
    Context {
        scheduler: Scheduler::new(
            client!(aws_sdk_scheduler),
            settings.schedules.as_ref(),
            FunctionName { region: REGION, name: "drain" },
        ),
        announcements: settings.announcements.as_deref().map(|url| Queue::new(by_hand.clone(), url)),
        itself: Itself::new(by_hand, "drain"),
        settings,
        ec2: client!(aws_sdk_ec2, RetryConfig::disabled()),
        autoscaling: client!(aws_sdk_autoscaling),
        load_balancing: client!(aws_sdk_elasticloadbalancingv2),
        eventbridge: client!(aws_sdk_eventbridge),
        access: Access {
            clusters: Arc::new(Clusters::new(client!(aws_sdk_eks, RetryConfig::disabled()), stored)),
            credentials,
            region: REGION.to_owned(),
            connector: Box::new(ClusterDouble(Box::new(cluster))),
        },
        log,
    }
}

/// Factory of clients that are doubles.
struct ClusterDouble(Box<dyn Fn(&str) -> Client + Send + Sync>);

impl ClusterConnector for ClusterDouble {
    fn connect(
        &self,
        cluster: &Cluster,
        _: &DescribeLimit,
        _: &str,
        _: Credentials,
    ) -> Result<Connection, ConnectError> {
        Ok(Connection { client: (self.0)(&cluster.endpoint) })
    }
}

impl fmt::Debug for ClusterDouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClusterDouble")
    }
}
