//! From a cluster's name to a Kubernetes client: EKS' answer, our credentials, one connection.

use std::sync::Arc;

use aws_credential_types::provider::{ProvideCredentials as _, SharedCredentialsProvider};
use spillway_eks::{Cluster, ClusterName, Clusters, Connection, DescribeError};
use tokio::time::Instant;

use crate::aws::{self, CallError, chain};
use crate::failure::{DESCRIBE_CLUSTER, Failure};

/// The way into every cluster.
#[derive(Debug)]
pub(crate) struct Access {
    pub(crate) clusters: Arc<Clusters>,
    pub(crate) credentials: SharedCredentialsProvider,
    pub(crate) region: String,
}

impl Access {
    /// A fresh client. Lambda freezes the process between invocations and a connection may be
    /// cut meanwhile, so none is kept; endpoint and certificate authority are. EKS is asked
    /// until `end`.
    pub(crate) async fn connect(&self, name: &ClusterName, end: Instant) -> Result<Connection, Failure> {
        let unusable = |why: String| Failure::Cluster { cluster: name.clone(), why };
        let cluster = aws::until(DESCRIBE_CLUSTER, end, || self.describe(name)).await??;
        let credentials = self.credentials.provide_credentials().await.map_err(|error| unusable(chain(&error)))?;
        spillway_eks::connect(&cluster, Arc::clone(&self.clusters), &self.region, credentials)
            .map_err(|error| unusable(chain(&error)))
    }

    /// The outer error is EKS' refusal, the inner one an answer that is no use.
    async fn describe(&self, name: &ClusterName) -> Result<Result<Cluster, Failure>, CallError> {
        match self.clusters.get(name).await {
            Ok(cluster) => Ok(Ok(cluster)),
            Err(DescribeError::Call(_, source)) => Err(CallError::new(DESCRIBE_CLUSTER, &source)),
            Err(error @ DescribeError::Incomplete(..)) => {
                Ok(Err(Failure::Cluster { cluster: name.clone(), why: chain(&error) }))
            }
        }
    }
}
