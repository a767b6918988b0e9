//! Reads the endpoint and certificate authority of each cluster from EKS once, and caches both in memory.
//!
//! After a failed connection, EKS is called again, because the endpoint or certificate authority may have changed.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use aws_sdk_eks::error::SdkError;
use aws_sdk_eks::operation::describe_cluster::DescribeClusterError;
use aws_sdk_eks::operation::list_clusters::ListClustersError;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::{Either, select};
use spillway_aws_call::CallError;
use spillway_core::cluster::ClusterName;
use spillway_retry::Transient as _;
use tokio::time::sleep;

use crate::stored::{StoredClusters, UnlistedNames};

const DESCRIBE: &str = "eks:DescribeCluster";
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    pub name: ClusterName,
    /// `https` URL of the API server.
    pub endpoint: String,
    /// Certificate authority in PEM: one certificate, or two during a rotation.
    pub ca: Vec<u8>,
}

/// Time to wait for EKS before Parameter Store is read. EKS usually responds in 0.1 s.
const EKS_ANSWERS_WITHIN: Duration = Duration::from_millis(500);

#[derive(Debug, thiserror::Error)]
pub enum DescribeError {
    #[error("cannot describe cluster {0}")]
    Call(ClusterName, #[source] Box<SdkError<DescribeClusterError>>),
    /// The response lacks the endpoint or certificate authority, because the cluster is being created or deleted.
    #[error("cluster {0} has no usable {1} yet")]
    Incomplete(ClusterName, &'static str),
}

impl DescribeError {
    /// Returns `true` if a retry may succeed.
    fn may_pass(&self) -> bool {
        let Self::Call(_, error) = self else { return false };
        let Some(answer) = error.as_service_error() else { return true };
        let (code, message) = (answer.meta().code().unwrap_or_default(), answer.meta().message().unwrap_or_default());
        let status = error.raw_response().map(|response| response.status().as_u16());
        CallError::answered(DESCRIBE, code, message, status).is_transient()
    }
}

#[derive(Debug)]
pub struct Clusters {
    eks: aws_sdk_eks::Client,
    stored: Option<StoredClusters>,
    known: Mutex<BTreeMap<ClusterName, Cluster>>,
}

impl Clusters {
    /// Creates an empty cache. If EKS does not respond, the cache reads the copies in `stored`.
    #[must_use]
    pub fn new(eks: aws_sdk_eks::Client, stored: Option<StoredClusters>) -> Self {
        Self { eks, stored, known: Mutex::default() }
    }

    pub async fn get(&self, name: &ClusterName) -> Result<Cluster, DescribeError> {
        if let Some(cluster) = self.known_as(name) {
            return Ok(cluster);
        }
        let cluster = match &self.stored {
            Some(stored) => self.described_or_stored(name, stored).await?,
            None => self.describe(name).await?,
        };
        self.learn(&cluster);
        Ok(cluster)
    }

    /// Describes the cluster again and updates the cache. After a failure, the cache is unchanged.
    pub(crate) async fn renew(&self, name: &ClusterName) -> Result<Cluster, DescribeError> {
        let cluster = self.describe(name).await?;
        self.learn(&cluster);
        Ok(cluster)
    }

    /// Copies the cached description of a cluster to Parameter Store.
    pub async fn store(&self, name: &ClusterName) -> Result<(), CallError> {
        match (&self.stored, self.known_as(name)) {
            (Some(stored), Some(cluster)) => stored.store(&cluster).await,
            _ => Ok(()),
        }
    }

    /// Writes cluster names to Parameter Store, for drains that must search all clusters for a node.
    pub async fn store_names(&self, names: &[ClusterName], others: UnlistedNames) -> Result<(), CallError> {
        match &self.stored {
            Some(stored) => stored.store_names(names, others).await,
            None => Ok(()),
        }
    }

    fn known_as(&self, name: &ClusterName) -> Option<Cluster> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    fn learn(&self, cluster: &Cluster) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(cluster.name.clone(), cluster.clone());
    }

    /// Loads all clusters from Parameter Store into the cache, and returns the names in the cache.
    pub async fn known_or_stored(&self) -> Vec<ClusterName> {
        let stored = match &self.stored {
            Some(stored) => stored.read_all().await,
            None => Vec::new(),
        };
        for cluster in stored {
            self.known.lock().unwrap_or_else(PoisonError::into_inner).entry(cluster.name.clone()).or_insert(cluster);
        }
        self.known.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }

    pub async fn list(&self) -> Result<Vec<ClusterName>, Box<SdkError<ListClustersError>>> {
        let mut pages = self.eks.list_clusters().into_paginator().items().send();
        let mut names = Vec::new();
        while let Some(name) = pages.next().await {
            names.push(ClusterName::new(name.map_err(Box::new)?));
        }
        Ok(names)
    }

    pub fn forget(&self, name: &ClusterName) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
    }

    /// Calls `DescribeCluster`. If EKS fails or does not respond within [`EKS_ANSWERS_WITHIN`], reads Parameter Store.
    async fn described_or_stored(&self, name: &ClusterName, stored: &StoredClusters) -> Result<Cluster, DescribeError> {
        let stored_cluster = async {
            sleep(EKS_ANSWERS_WITHIN).await;
            let cluster = stored.read(name).await;
            if cluster.is_some() {
                tracing::warn!(cluster.name = %name, "EKS does not describe cluster {name}; using what the self-test wrote down");
            }
            cluster
        };
        match select(pin!(self.describe(name)), pin!(stored_cluster)).await {
            Either::Left((Err(error), stored_cluster)) if error.may_pass() => stored_cluster.await.ok_or(error),
            Either::Left((described, _)) => described,
            Either::Right((Some(cluster), _)) => Ok(cluster),
            Either::Right((None, described)) => described.await,
        }
    }

    async fn describe(&self, name: &ClusterName) -> Result<Cluster, DescribeError> {
        let answer = self
            .eks
            .describe_cluster()
            .name(name.as_str())
            .send()
            .await
            .map_err(|source| DescribeError::Call(name.clone(), Box::new(source)))?;
        let incomplete = |what| DescribeError::Incomplete(name.clone(), what);
        let cluster = answer.cluster.ok_or_else(|| incomplete("description"))?;
        let ca = cluster.certificate_authority.and_then(|authority| authority.data);
        Ok(Cluster {
            name: name.clone(),
            endpoint: cluster.endpoint.ok_or_else(|| incomplete("endpoint"))?,
            ca: ca.and_then(|data| STANDARD.decode(data).ok()).ok_or_else(|| incomplete("certificate authority"))?,
        })
    }
}
