//! The clients and the settings that every action is handed, and what one notice is about (`target`).

pub(crate) mod cluster;
pub(crate) mod target;

use kube::Client;
use spillway_eks::ClusterName;
use spillway_startup::logs::chain;
use tokio::time::Instant;

use crate::continuation::schedule::Scheduler;
use crate::failure::Failure;
use crate::invocation::retry;
use crate::kube::ApiError;
use crate::settings::Settings;
use cluster::Access;
pub(crate) use target::{Attempt, Target};

/// Everything that a notice needs, made once when the function starts.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) settings: Settings,
    pub(crate) ec2: aws_sdk_ec2::Client,
    pub(crate) autoscaling: aws_sdk_autoscaling::Client,
    pub(crate) eventbridge: aws_sdk_eventbridge::Client,
    pub(crate) scheduler: Scheduler,
    pub(crate) access: Access,
}

impl Context {
    /// Connects to a cluster and does something there, again and again until it succeeds, fails for good, or `end` is here.
    /// `doing` completes the sentence "cannot …".
    pub(crate) async fn in_cluster<T>(
        &self,
        cluster: &ClusterName,
        end: Instant,
        doing: &str,
        mut work: impl AsyncFnMut(Client) -> Result<T, ApiError>,
    ) -> Result<T, Failure> {
        let cannot = |error| Failure::Kubernetes { doing: doing.to_owned(), cluster: cluster.clone(), error };
        let attempt = async || {
            let connection = self.access.connect(cluster, end).await?;
            work(connection.client).await.map_err(cannot)
        };
        let retrying = |error: &Failure| {
            tracing::warn!(cluster.name = %cluster, error = chain(error), "cannot {doing} in cluster {cluster}; trying again");
        };
        retry::until(end, attempt, retrying).await.map_err(|error| error.unwrap_or_else(|| cannot(ApiError::TimeUp)))
    }
}
