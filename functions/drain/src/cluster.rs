//! From a cluster's name to a Kubernetes client: EKS' answer, our credentials, one connection.

use aws_credential_types::provider::{ProvideCredentials as _, SharedCredentialsProvider};
use spillway_eks::{ClusterName, Clusters, DescribeError};

use crate::aws::{CallError, chain};
use crate::failure::Failure;

/// The way into every cluster.
#[derive(Debug)]
pub(crate) struct Access {
    pub(crate) clusters: Clusters,
    pub(crate) credentials: SharedCredentialsProvider,
    pub(crate) region: String,
}

impl Access {
    /// A fresh client. Lambda freezes the process between invocations and a connection may be
    /// cut meanwhile, so none is kept; endpoint and certificate authority are.
    pub(crate) async fn connect(&self, name: &ClusterName) -> Result<kube::Client, Failure> {
        let unusable = |why: String| Failure::Cluster { cluster: name.clone(), why };
        let cluster = self.clusters.get(name).await.map_err(|error| match error {
            DescribeError::Call(_, source) => Failure::Aws(CallError::new("eks:DescribeCluster", &source)),
            incomplete @ DescribeError::Incomplete(..) => unusable(chain(&incomplete)),
        })?;
        let credentials = self.credentials.provide_credentials().await.map_err(|error| unusable(chain(&error)))?;
        spillway_eks::connect(&cluster, &self.region, credentials).map_err(|error| unusable(chain(&error)))
    }

    /// Forgets what EKS said: a connection failed, and the cluster may have a new certificate
    /// authority or endpoint.
    pub(crate) fn forget(&self, name: &ClusterName) {
        self.clusters.forget(name);
    }
}
