//! Connects to the API server of an EKS cluster by the cluster's name.

use std::fmt::Debug;
use std::sync::Arc;

use aws_credential_types::Credentials;
use aws_credential_types::provider::{ProvideCredentials as _, SharedCredentialsProvider};
use aws_sdk_eks::operation::describe_cluster::DescribeClusterError;
use spillway_core::cluster::ClusterName;
use spillway_eks::{Cluster, Clusters, ConnectError, Connection, DescribeError, DescribeLimit};
use tokio::time::Instant;

use crate::aws::{self, CallError};
use crate::failure::{DESCRIBE_CLUSTER, Failure};

/// Access to EKS clusters: their cached descriptions, AWS credentials, and a connector to API servers.
#[derive(Debug)]
pub struct Access {
    pub clusters: Arc<Clusters>,
    pub(crate) credentials: SharedCredentialsProvider,
    pub(crate) region: String,
    pub(crate) connector: Box<dyn ClusterConnector>,
}

/// Creates Kubernetes clients. In tests, the clients use a scripted API server.
pub(crate) trait ClusterConnector: Debug + Send + Sync {
    fn connect(
        &self,
        cluster: &Cluster,
        describe_limit: &DescribeLimit,
        region: &str,
        credentials: Credentials,
    ) -> Result<Connection, ConnectError>;
}

/// Creates HTTP/2 connections to EKS endpoints.
#[derive(Debug)]
pub(crate) struct OneConnection;

impl ClusterConnector for OneConnection {
    fn connect(
        &self,
        cluster: &Cluster,
        describe_limit: &DescribeLimit,
        region: &str,
        credentials: Credentials,
    ) -> Result<Connection, ConnectError> {
        spillway_eks::connect(cluster, describe_limit, region, credentials)
    }
}

impl Access {
    /// Opens a new connection, because an old one may not survive a freeze of the Lambda function. Retries calls to EKS until
    /// `end`.
    pub async fn connect(&self, name: &ClusterName, end: Instant) -> Result<Connection, Failure> {
        self.connect_again(name, end, &self.describe_limit()).await
    }

    pub(super) fn describe_limit(&self) -> DescribeLimit {
        DescribeLimit::new(Arc::clone(&self.clusters))
    }

    pub(super) async fn connect_again(
        &self,
        name: &ClusterName,
        end: Instant,
        describe_limit: &DescribeLimit,
    ) -> Result<Connection, Failure> {
        let cluster = self.describe(name, end).await?;
        let credentials = self.credentials.provide_credentials().await.map_err(|error| unusable(name, error))?;
        self.connector
            .connect(&cluster, describe_limit, &self.region, credentials)
            .map_err(|error| unusable(name, error))
    }

    async fn describe(&self, name: &ClusterName, end: Instant) -> Result<Cluster, Failure> {
        let described = aws::until(DESCRIBE_CLUSTER, end, async || match self.clusters.get(name).await {
            Ok(cluster) => Ok(Ok(cluster)),
            Err(DescribeError::Call(_, source)) => {
                let is_unknown =
                    source.as_service_error().is_some_and(DescribeClusterError::is_resource_not_found_exception);
                let error = CallError::new(DESCRIBE_CLUSTER, *source);
                if is_unknown {
                    Ok(Err(Failure::UnknownCluster { cluster: name.clone(), why: error }))
                } else {
                    Err(error)
                }
            }
            Err(error @ DescribeError::Incomplete(..)) => Ok(Err(unusable(name, error))),
        });
        described.await?
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

    /// Duration of a connection to an unknown cluster, after these answers of EKS.
    async fn described_for(answers: &[(u16, &str)]) -> Duration {
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
    async fn unknown_cluster_is_final_and_throttling_backs_off_longer() {
        assert_eq!(described_for(&[]).await, Duration::ZERO);
        assert!(described_for(&[(500, "ServerException")]).await < Duration::from_millis(200));
        assert!(described_for(&[(429, "ThrottlingException")]).await >= Duration::from_millis(500));
    }
}
