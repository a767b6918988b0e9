//! Kubernetes client for a cluster's name: EKS' description, credentials, one connection.

use std::fmt::Debug;
use std::sync::Arc;

use aws_credential_types::Credentials;
use aws_credential_types::provider::{ProvideCredentials as _, SharedCredentialsProvider};
use aws_sdk_eks::operation::describe_cluster::DescribeClusterError;
use spillway_core::cluster::ClusterName;
use spillway_eks::{Cluster, Clusters, ConnectError, Connection, DescribeError, Renewals};
use tokio::time::Instant;

use crate::aws::{self, CallError};
use crate::failure::{DESCRIBE_CLUSTER, Failure};

/// Access to every cluster.
#[derive(Debug)]
pub struct Access {
    pub clusters: Arc<Clusters>,
    pub(crate) credentials: SharedCredentialsProvider,
    pub(crate) region: String,
    pub(crate) connector: Box<dyn ClusterConnector>,
}

/// Factory of clients: a connection, or in tests a scripted API server.
pub(crate) trait ClusterConnector: Debug + Send + Sync {
    fn connect(
        &self,
        cluster: &Cluster,
        renewals: &Renewals,
        region: &str,
        credentials: Credentials,
    ) -> Result<Connection, ConnectError>;
}

/// Factory of HTTP/2 connections to EKS' endpoints.
#[derive(Debug)]
pub(crate) struct OneConnection;

impl ClusterConnector for OneConnection {
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

impl Access {
    /// Connects again for each use, because a connection may be cut while Lambda freezes the process. Endpoint and certificate
    /// authority are cached. Calls to EKS are retried until `end`.
    pub async fn connect(&self, name: &ClusterName, end: Instant) -> Result<Connection, Failure> {
        self.connect_again(name, end, &self.renewals()).await
    }

    pub(super) fn renewals(&self) -> Renewals {
        Renewals::new(Arc::clone(&self.clusters))
    }

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
