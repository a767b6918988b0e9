//! Holds the clients and settings that all actions share.

pub(crate) mod cluster;
mod environment;
pub(crate) mod log;
mod retry_policy;
pub(crate) mod target;

use std::cell::OnceCell;

use jiff::Timestamp;
use kube::Client;
use spillway_core::clock::Clock;
use spillway_core::cluster::ClusterName;
use spillway_notice::InstanceId;
use spillway_retry as retry;
use spillway_settings::Settings;
use spillway_startup::logs::chain;
use tokio::time::Instant;

use crate::aws;
use crate::aws::itself::{INVOKE, Itself};
use crate::aws::queue::Queue;
use crate::failure::Failure;
use crate::kube::ApiError;
use crate::later::{Later, Scheduler};
use cluster::Access;
use log::Log;
pub(crate) use retry_policy::RetryPolicy;
pub(crate) use target::{Attempt, Target};

/// Clients and settings, created once when the function starts.
#[derive(Debug)]
pub struct Context {
    pub settings: Settings,
    pub ec2: aws_sdk_ec2::Client,
    pub autoscaling: aws_sdk_autoscaling::Client,
    pub load_balancing: aws_sdk_elasticloadbalancingv2::Client,
    pub eventbridge: aws_sdk_eventbridge::Client,
    pub itself: Itself,
    /// SQS queue of the announcer function.
    pub(crate) announcements: Option<Queue>,
    pub(crate) scheduler: Scheduler,
    pub access: Access,
    pub log: Log,
}

impl Context {
    pub fn schedules(&self) -> &aws_sdk_scheduler::Client {
        self.scheduler.client()
    }

    /// Returns the times at which scheduled drains of the instance start. Retries until `end`.
    pub async fn scheduled_for(&self, instance: &InstanceId, end: Instant) -> Result<Vec<Timestamp>, Failure> {
        self.scheduler.times_of(instance, end).await
    }

    /// Invokes this Lambda function with a payload, at once or through a schedule. Retries until `end`.
    pub(crate) async fn send(&self, payload: &str, later: Later, clock: Clock, end: Instant) -> Result<(), Failure> {
        match later {
            Later::Now => Ok(aws::until(INVOKE, end, || self.itself.invoke(payload)).await?),
            Later::At(at, name) => self.scheduler.put(&name, at, payload, clock, end).await,
        }
    }

    /// Returns the clusters that the settings name. If they name none, returns the cached clusters and those in Parameter Store.
    pub(crate) async fn known_clusters(&self) -> Vec<ClusterName> {
        let named = &self.settings.clusters;
        if named.is_empty() {
            return self.access.clusters.known_or_stored().await;
        }
        named.iter().map(ClusterName::new).collect()
    }

    /// Connects to a cluster and runs `work` there, with retries as `policy` allows. `doing` completes the log line "cannot …".
    pub(crate) async fn in_cluster<T>(
        &self,
        cluster: &ClusterName,
        policy: impl Into<RetryPolicy>,
        doing: &str,
        mut work: impl AsyncFnMut(Client) -> Result<T, ApiError>,
    ) -> Result<T, Failure> {
        let cannot = |error| Failure::Kubernetes { doing: doing.to_owned(), cluster: cluster.clone(), error };
        let policy = policy.into();
        let (describe_limit, first_denied) = (self.access.describe_limit(), OnceCell::new());
        let attempt = async || {
            // Boxed, because the futures of all work in a cluster contain it.
            let connection = Box::pin(self.access.connect_again(cluster, policy.end(), &describe_limit)).await?;
            work(connection.client).await.map_err(cannot)
        };
        let retrying = |failure: &Failure| {
            let error = chain(failure);
            tracing::warn!(cluster.name = %cluster, error, "cannot {doing} in cluster {cluster}; trying again");
        };
        let is_retried = |failure: &Failure| policy.retries(failure, &first_denied);
        let done = retry::until_final(policy.end(), is_retried, attempt, retrying).await;
        done.map_err(|stopped| stopped.error_or(cannot(ApiError::TimeUp)))
    }
}
