//! The function over doubles of AWS, of the API server and of its log: for tests, here and, with the feature `test-support`,
//! in other crates. Nothing else of the function is public for tests.
//!
//! * `aws`: a double of AWS
//! * `script`: the calls that are to come, and the answer to each
//! * `scripted`: a context whose AWS and whose API server follow scripts

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
use spillway_eks::{Cluster, Clusters, ConnectError, Connection, Remembered, Renewals};
use spillway_notice::Home;
use spillway_receipt::Receipt;
use spillway_settings::{Schedules, Settings};

use crate::aws::itself::Itself;
use crate::aws::queue::Queue;
use crate::context::Context;
use crate::context::cluster::{Access, Connector};
use crate::context::log::Log;
use crate::handler;
use crate::later::{FunctionName, Scheduler};
use aws::AwsDouble;

/// Where the function of a test runs.
pub const REGION: &str = "us-east-1";

/// The function, whose calls are answered by doubles.
#[derive(Debug)]
pub struct Function(Context);

/// An invocation of a test.
#[derive(Debug)]
pub struct TestInvocation {
    /// Lambda's id of it: the same for all attempts at an event.
    pub request_id: String,
    /// Where the function is at home.
    pub home: Home,
    /// When it begins by the function's clock, which is now.
    pub began: Timestamp,
    /// How long Lambda lets it run.
    pub lasts: SignedDuration,
}

/// How often the SDK makes a call that fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SdkAttempts {
    /// Once, and without an end to its time: each call that a double sees is one of the function's.
    Once,
    /// As often as on Lambda.
    AsOnLambda,
}

impl Function {
    /// The function with these settings. `aws` answers each call to AWS, `cluster` makes the client for each connection to the
    /// API server at an endpoint, and `log` gets each wide line.
    pub fn new(
        settings: Settings,
        aws: &AwsDouble,
        cluster: impl Fn(&str) -> Client + Send + Sync + 'static,
        log: impl Fn(&str) + Send + Sync + 'static,
    ) -> Self {
        Self(context(settings, aws, SdkAttempts::AsOnLambda, cluster, Log::new(log)))
    }

    /// Handles an event. Fails with the text of the failure.
    pub async fn handle(&self, event: Value, invocation: TestInvocation) -> Result<Receipt, String> {
        let TestInvocation { request_id, home, began, lasts } = invocation;
        let mut invocation = Invocation::until(began + lasts, &request_id, Clock::starting_at(began));
        invocation.home = home;
        handler::handle(&self.0, event, &invocation).await.map_err(|failure| failure.text())
    }
}

/// The one context for tests.
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
    // The SDK lets all clients of a process share what they may spend on retries: one test would use up what another has.
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
                    // To sign a call takes as long as all else of it.
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
    let remembered = (!settings.stack.is_empty()).then(|| Remembered::new(by_hand.clone(), &settings.stack, REGION));
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
            clusters: Arc::new(Clusters::new(client!(aws_sdk_eks, RetryConfig::disabled()), remembered)),
            credentials,
            region: REGION.to_owned(),
            connector: Box::new(ClusterDouble(Box::new(cluster))),
        },
        log,
    }
}

/// Every connection goes to a double.
struct ClusterDouble(Box<dyn Fn(&str) -> Client + Send + Sync>);

impl Connector for ClusterDouble {
    fn connect(&self, cluster: &Cluster, _: &Renewals, _: &str, _: Credentials) -> Result<Connection, ConnectError> {
        Ok(Connection { client: (self.0)(&cluster.endpoint) })
    }
}

impl fmt::Debug for ClusterDouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClusterDouble")
    }
}
