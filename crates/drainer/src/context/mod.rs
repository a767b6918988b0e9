//! The clients and the settings that every action is handed, and what one notice is about (`target`).

pub(crate) mod cluster;
mod environment;
pub(crate) mod log;
pub(crate) mod patience;
pub(crate) mod target;

use std::cell::OnceCell;

use jiff::Timestamp;
use kube::Client;
use spillway_core::clock::Clock;
use spillway_core::cluster::ClusterName;
use spillway_notice::InstanceId;
use spillway_retry::{self as retry, Stopped, Transient};
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
pub(crate) use patience::Patience;
pub(crate) use target::{Attempt, Target};

/// Everything that a notice needs, made once when the function starts.
#[derive(Debug)]
pub struct Context {
    pub settings: Settings,
    pub ec2: aws_sdk_ec2::Client,
    pub autoscaling: aws_sdk_autoscaling::Client,
    pub load_balancing: aws_sdk_elasticloadbalancingv2::Client,
    pub eventbridge: aws_sdk_eventbridge::Client,
    pub itself: Itself,
    /// Where the announcer fetches its messages from.
    pub(crate) announcements: Option<Queue>,
    pub(crate) scheduler: Scheduler,
    pub access: Access,
    pub log: Log,
}

/// An attempt in a cluster that failed.
struct FailedAttempt {
    failure: Failure,
    is_tried_again: bool,
}

impl Transient for FailedAttempt {
    fn is_transient(&self) -> bool {
        self.is_tried_again
    }
}

impl Context {
    /// The client of EventBridge Scheduler.
    pub fn schedules(&self) -> &aws_sdk_scheduler::Client {
        self.scheduler.client()
    }

    /// Returns the times at which schedules of an instance begin drains. Retries until `end`.
    pub async fn scheduled_for(&self, instance: &InstanceId, end: Instant) -> Result<Vec<Timestamp>, Failure> {
        self.scheduler.times_of(instance, end).await
    }

    /// Invokes the function with a payload of its own, now or at a time. Retries until `end`.
    pub(crate) async fn send(&self, payload: &str, later: Later, clock: Clock, end: Instant) -> Result<(), Failure> {
        match later {
            Later::Now => Ok(aws::until(INVOKE, end, || self.itself.invoke(payload)).await?),
            Later::At(at, name) => self.scheduler.put(&name, at, payload, clock, end).await,
        }
    }

    /// The clusters that may be entered without EC2 naming them: those of the setting, or else those that this process has
    /// entered before or a self-test has written down.
    pub(crate) async fn known_clusters(&self) -> Vec<ClusterName> {
        let named = &self.settings.clusters;
        if named.is_empty() {
            return self.access.clusters.known_or_remembered().await;
        }
        named.iter().map(ClusterName::new).collect()
    }

    /// Connects to a cluster and does something there, again and again until it succeeds, fails for good, or the patience is
    /// at its end. `doing` completes the sentence "cannot …".
    pub(crate) async fn in_cluster<T>(
        &self,
        cluster: &ClusterName,
        patience: impl Into<Patience>,
        doing: &str,
        mut work: impl AsyncFnMut(Client) -> Result<T, ApiError>,
    ) -> Result<T, Failure> {
        let cannot = |error| Failure::Kubernetes { doing: doing.to_owned(), cluster: cluster.clone(), error };
        let patience = patience.into();
        let end = patience.end;
        let renewals = self.access.renewals();
        let first_refused = OnceCell::new();
        let failed = |failure: Failure| {
            let is_tried_again = match failure.not_let_in() {
                Some(code) => patience.bears(code, *first_refused.get_or_init(Instant::now)),
                None => failure.is_transient(),
            };
            FailedAttempt { failure, is_tried_again }
        };
        let attempt = async || {
            // In a box, because the futures of all that is done in a cluster contain it.
            let connecting = Box::pin(self.access.connect_again(cluster, end, &renewals));
            let connection = connecting.await.map_err(failed)?;
            work(connection.client).await.map_err(cannot).map_err(failed)
        };
        let retrying = |error: &FailedAttempt| {
            let error = chain(&error.failure);
            tracing::warn!(cluster.name = %cluster, error, "cannot {doing} in cluster {cluster}; trying again");
        };
        let done = retry::until(end, attempt, retrying).await;
        done.map_err(|stopped| match stopped {
            Stopped::Failed(error) => error.failure,
            Stopped::TimeUp => cannot(ApiError::TimeUp),
        })
    }
}
