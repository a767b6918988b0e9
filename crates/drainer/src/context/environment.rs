//! Creates the context of a Lambda function from its environment variables.

use std::sync::Arc;

use aws_smithy_types::retry::RetryConfig;
use aws_types::SdkConfig;
use lambda_runtime::Error;
use spillway_aws_call::Caller;
use spillway_eks::{Clusters, StoredClusters};
use spillway_settings::Settings;

use super::Context;
use super::cluster::{Access, OneConnection};
use super::log::Log;
use crate::aws::itself::Itself;
use crate::aws::queue::Queue;
use crate::later::{FunctionName, Scheduler};

impl Context {
    /// Creates the AWS clients. Fails if an environment variable or the credentials are missing.
    pub fn from_environment(settings: Settings, aws: &SdkConfig) -> Result<Self, Error> {
        // The SDK does not retry: `crates/retry` does, with longer pauses after throttled calls.
        let once = aws.to_builder().retry_config(RetryConfig::disabled()).build();
        let region = aws.region().ok_or("AWS_REGION is not set")?.to_string();
        let function = std::env::var("AWS_LAMBDA_FUNCTION_NAME").map_err(|_| "AWS_LAMBDA_FUNCTION_NAME is not set")?;
        let credentials = aws.credentials_provider().ok_or("the function has no AWS credentials")?;
        let caller = Caller::new(aws)?;
        let stored =
            (!settings.stack.is_empty()).then(|| StoredClusters::new(caller.clone(), &settings.stack, &region));
        let itself = Itself::new(caller.clone(), &function);
        let announcements = settings.announcements.as_deref().map(|url| Queue::new(caller, url));
        let client = aws_sdk_scheduler::Client::new(aws);
        let scheduler =
            Scheduler::new(client, settings.schedules.as_ref(), FunctionName { region: &region, name: &function });
        Ok(Self {
            settings,
            ec2: aws_sdk_ec2::Client::new(&once),
            autoscaling: aws_sdk_autoscaling::Client::new(aws),
            load_balancing: aws_sdk_elasticloadbalancingv2::Client::new(aws),
            eventbridge: aws_sdk_eventbridge::Client::new(aws),
            itself,
            announcements,
            scheduler,
            access: Access {
                clusters: Arc::new(Clusters::new(aws_sdk_eks::Client::new(&once), stored)),
                credentials,
                region,
                connector: Box::new(OneConnection),
            },
            log: Log::stdout(),
        })
    }
}
