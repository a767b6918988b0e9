//! Endpoint and certificate authority of each cluster, described by EKS once and cached while the function is warm.
//!
//! EKS rotates certificate authorities, and a recreated cluster has a new endpoint. Therefore EKS is called again after a failed
//! connection, without the cache.

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

use crate::remembered::{OtherNames, Remembered};

const DESCRIBE: &str = "eks:DescribeCluster";
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    pub name: ClusterName,
    /// `https` URL of the API server.
    pub endpoint: String,
    /// Certificate authority in PEM: one certificate, or two during a rotation.
    pub ca: Vec<u8>,
}

/// Time after which Parameter Store is read if EKS has not answered. EKS usually answers in 0.1 s.
const EKS_ANSWERS_WITHIN: Duration = Duration::from_millis(500);

#[derive(Debug, thiserror::Error)]
pub enum DescribeError {
    #[error("cannot describe cluster {0}")]
    Call(ClusterName, #[source] Box<SdkError<DescribeClusterError>>),
    /// The answer lacks a field that a connection needs: the cluster is being created or deleted.
    #[error("cluster {0} has no usable {1} yet")]
    Incomplete(ClusterName, &'static str),
}

impl DescribeError {
    /// Returns `true` if a later call may succeed.
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
    remembered: Option<Remembered>,
    known: Mutex<BTreeMap<ClusterName, Cluster>>,
}

impl Clusters {
    /// Empty cache of EKS' descriptions. `remembered`: client for the copies in Parameter Store.
    #[must_use]
    pub fn new(eks: aws_sdk_eks::Client, remembered: Option<Remembered>) -> Self {
        Self { eks, remembered, known: Mutex::default() }
    }

    pub async fn get(&self, name: &ClusterName) -> Result<Cluster, DescribeError> {
        if let Some(cluster) = self.known_as(name) {
            return Ok(cluster);
        }
        let cluster = match &self.remembered {
            Some(remembered) => self.described_or_recalled(name, remembered).await?,
            None => self.describe(name).await?,
        };
        self.learn(&cluster);
        Ok(cluster)
    }

    /// Describes the cluster again, and replaces the cached description. On failure the cached description stays.
    pub(crate) async fn renew(&self, name: &ClusterName) -> Result<Cluster, DescribeError> {
        let cluster = self.describe(name).await?;
        self.learn(&cluster);
        Ok(cluster)
    }

    /// Writes a cached cluster to Parameter Store for other processes.
    pub async fn remember(&self, name: &ClusterName) -> Result<(), CallError> {
        match (&self.remembered, self.known_as(name)) {
            (Some(remembered), Some(cluster)) => remembered.remember(&cluster).await,
            _ => Ok(()),
        }
    }

    /// Writes the names of all clusters to Parameter Store, for searches over all clusters.
    pub async fn remember_names(&self, names: &[ClusterName], others: OtherNames) -> Result<(), CallError> {
        match &self.remembered {
            Some(remembered) => remembered.remember_names(names, others).await,
            None => Ok(()),
        }
    }

    fn known_as(&self, name: &ClusterName) -> Option<Cluster> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    fn learn(&self, cluster: &Cluster) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(cluster.name.clone(), cluster.clone());
    }

    /// Names of the clusters that are cached or in Parameter Store.
    pub async fn known_or_remembered(&self) -> Vec<ClusterName> {
        let remembered = match &self.remembered {
            Some(remembered) => remembered.recall_all().await,
            None => Vec::new(),
        };
        for cluster in remembered {
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

    /// Calls `DescribeCluster`. Reads Parameter Store instead if EKS fails or stays silent for [`EKS_ANSWERS_WITHIN`].
    async fn described_or_recalled(
        &self,
        name: &ClusterName,
        remembered: &Remembered,
    ) -> Result<Cluster, DescribeError> {
        let recalled = async {
            sleep(EKS_ANSWERS_WITHIN).await;
            let cluster = remembered.recall(name).await;
            if cluster.is_some() {
                tracing::warn!(cluster.name = %name, "EKS does not describe cluster {name}; using what the self-test wrote down");
            }
            cluster
        };
        match select(pin!(self.describe(name)), pin!(recalled)).await {
            Either::Left((Err(error), recalled)) if error.may_pass() => recalled.await.ok_or(error),
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
