//! From a cluster's name to a Kubernetes client: EKS' answer, our credentials, one connection.

use std::fmt::Debug;
use std::sync::Arc;

use aws_credential_types::Credentials;
use aws_credential_types::provider::{ProvideCredentials as _, SharedCredentialsProvider};
use aws_sdk_eks::operation::describe_cluster::DescribeClusterError;
use spillway_core::cluster::ClusterName;
use spillway_eks::{Cluster, Clusters, ConnectError, Connection, DescribeError, Renewals};
use spillway_retry::{self as retry, Stopped, Transient};
use spillway_startup::logs::chain;
use tokio::time::Instant;

use crate::aws::CallError;
use crate::failure::{DESCRIBE_CLUSTER, Failure};

/// The way into every cluster.
#[derive(Debug)]
pub struct Access {
    pub clusters: Arc<Clusters>,
    pub(crate) credentials: SharedCredentialsProvider,
    pub(crate) region: String,
    pub(crate) connector: Box<dyn Connector>,
}

/// Makes a client for a cluster as EKS describes it: by one HTTP/2 connection, or in a test by a scripted API server.
pub(crate) trait Connector: Debug + Send + Sync {
    fn connect(
        &self,
        cluster: &Cluster,
        renewals: &Renewals,
        region: &str,
        credentials: Credentials,
    ) -> Result<Connection, ConnectError>;
}

/// One HTTP/2 connection to the endpoint that EKS names.
#[derive(Debug)]
pub(crate) struct OneConnection;

impl Connector for OneConnection {
    fn connect(
        &self,
        cluster: &Cluster,
        renewals: &Renewals,
        region: &str,
        credentials: Credentials,
    ) -> Result<Connection, ConnectError> {
        spillway_eks::connect(cluster, renewals, region, credentials)
    }
}

/// Why EKS did not tell the way to a cluster.
enum Undescribed {
    /// The call failed.
    Call(CallError),
    /// There is no such cluster in this account and Region.
    Unknown(CallError),
    /// What it told is of no use.
    Incomplete(DescribeError),
}

impl Transient for Undescribed {
    fn is_transient(&self) -> bool {
        matches!(self, Self::Call(error) if error.is_transient())
    }

    fn is_throttled(&self) -> bool {
        matches!(self, Self::Call(error) if error.is_throttled())
    }
}

impl Access {
    /// A fresh client. Lambda freezes the process between invocations and a connection may be
    /// cut meanwhile, so none is kept; endpoint and certificate authority are. EKS is asked
    /// until `end`.
    pub async fn connect(&self, name: &ClusterName, end: Instant) -> Result<Connection, Failure> {
        self.connect_again(name, end, &self.renewals()).await
    }

    /// What attempts to connect share, so that EKS is not asked again for each.
    pub(super) fn renewals(&self) -> Renewals {
        Renewals::new(Arc::clone(&self.clusters))
    }

    /// A fresh client for one of several attempts.
    pub(super) async fn connect_again(
        &self,
        name: &ClusterName,
        end: Instant,
        renewals: &Renewals,
    ) -> Result<Connection, Failure> {
        let cluster = self.describe(name, end).await?;
        let credentials = self.credentials.provide_credentials().await.map_err(|error| unusable(name, error))?;
        self.connector.connect(&cluster, renewals, &self.region, credentials).map_err(|error| unusable(name, error))
    }

    async fn describe(&self, name: &ClusterName, end: Instant) -> Result<Cluster, Failure> {
        let ask = async || match self.clusters.get(name).await {
            Ok(cluster) => Ok(cluster),
            Err(DescribeError::Call(_, source)) => {
                let unknown =
                    source.as_service_error().is_some_and(DescribeClusterError::is_resource_not_found_exception);
                let error = CallError::new(DESCRIBE_CLUSTER, *source);
                Err(if unknown { Undescribed::Unknown(error) } else { Undescribed::Call(error) })
            }
            Err(error @ DescribeError::Incomplete(..)) => Err(Undescribed::Incomplete(error)),
        };
        let retrying = |error: &Undescribed| {
            if let Undescribed::Call(error) = error {
                tracing::warn!(error = chain(error), "{DESCRIBE_CLUSTER} failed; trying again");
            }
        };
        retry::until(end, ask, retrying).await.map_err(|stopped| match stopped {
            Stopped::Failed(Undescribed::Call(error)) => error.into(),
            Stopped::Failed(Undescribed::Unknown(why)) => Failure::UnknownCluster { cluster: name.clone(), why },
            Stopped::Failed(Undescribed::Incomplete(error)) => unusable(name, error),
            Stopped::TimeUp => CallError::unanswered(DESCRIBE_CLUSTER, "the time was up").into(),
        })
    }
}

fn unusable(cluster: &ClusterName, why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Failure {
    Failure::Cluster { cluster: cluster.clone(), why: why.into() }
}

#[cfg(test)]
mod tests {
    use std::future::ready;
    use std::sync::Mutex;
    use std::time::Duration;

    use super::*;
    use crate::context::log::Log;
    use crate::doubles::aws::{AwsDouble, json_error};
    use crate::doubles::{SdkAttempts, context};
    use crate::test_support::settings;

    /// For how long EKS is asked for a cluster, if these are its answers until it says that it has none of that name.
    async fn asked_for(answers: &[(u16, &str)]) -> Duration {
        let answers = answers.iter().chain(&[(404, "ResourceNotFoundException")]);
        let answers = answers.map(|(status, code)| (*status, json_error(code))).collect::<Vec<_>>().into_iter();
        let answers = Mutex::new(answers);
        let aws = AwsDouble::new(move |_| ready(answers.lock().unwrap().next()));
        let no_cluster = |_: &str| panic!("there is no such cluster");
        let context = context(settings(&[]), &aws, SdkAttempts::Once, no_cluster, Log::stdout());
        let began = Instant::now();
        let connected = context.access.connect(&ClusterName::new("prod"), began + Duration::from_secs(60)).await;
        assert!(matches!(connected, Err(Failure::UnknownCluster { .. })), "{connected:?}");
        began.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn eks_is_asked_once_for_a_cluster_that_it_does_not_have_and_again_later_if_it_is_throttled_than_if_it_fails()
    {
        assert_eq!(asked_for(&[]).await, Duration::ZERO);
        assert!(asked_for(&[(500, "ServerException")]).await < Duration::from_millis(200));
        assert!(asked_for(&[(429, "ThrottlingException")]).await >= Duration::from_millis(500));
    }
}
