//! A cluster's endpoint and certificate authority, asked of EKS once and remembered while the
//! function is warm.
//!
//! They change: EKS rotates certificate authorities, and an endpoint moves when a cluster is
//! made again under its old name. So a cluster that could not be connected to is forgotten.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use aws_sdk_eks::error::SdkError;
use aws_sdk_eks::operation::describe_cluster::DescribeClusterError;
use aws_sdk_eks::operation::list_clusters::ListClustersError;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use spillway_core::cluster::ClusterName;

/// What a connection needs to know of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    /// Its name, which every token is signed for.
    pub name: ClusterName,
    /// The `https` URL of its API server.
    pub endpoint: String,
    /// The PEM of its certificate authority: one certificate, or two during a rotation.
    pub ca: Vec<u8>,
}

/// EKS did not tell us the cluster.
#[derive(Debug, thiserror::Error)]
pub enum DescribeError {
    /// EKS refused the call or could not be reached.
    #[error("cannot describe cluster {0}")]
    Call(ClusterName, #[source] Box<SdkError<DescribeClusterError>>),
    /// The answer lacks what a connection needs: the cluster is being created or deleted.
    #[error("cluster {0} has no usable {1} yet")]
    Incomplete(ClusterName, &'static str),
}

/// The clusters seen so far.
#[derive(Debug)]
pub struct Clusters {
    eks: aws_sdk_eks::Client,
    known: Mutex<HashMap<ClusterName, Cluster>>,
}

impl Clusters {
    /// Nothing is known yet.
    #[must_use]
    pub fn new(eks: aws_sdk_eks::Client) -> Self {
        Self { eks, known: Mutex::default() }
    }

    /// The cluster by that name, from memory if it is there.
    pub async fn get(&self, name: &ClusterName) -> Result<Cluster, DescribeError> {
        if let Some(cluster) = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(name) {
            return Ok(cluster.clone());
        }
        let cluster = self.describe(name).await?;
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone(), cluster.clone());
        Ok(cluster)
    }

    /// The names of the clusters that have been described.
    pub fn known(&self) -> Vec<ClusterName> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }

    /// The names of all clusters of this account and Region.
    pub async fn list(&self) -> Result<Vec<ClusterName>, Box<SdkError<ListClustersError>>> {
        let mut pages = self.eks.list_clusters().into_paginator().items().send();
        let mut names = Vec::new();
        while let Some(name) = pages.next().await {
            names.push(ClusterName::new(name.map_err(Box::new)?));
        }
        Ok(names)
    }

    /// Forgets a cluster that could not be connected to, so that the next [`get`](Self::get) asks EKS.
    pub fn forget(&self, name: &ClusterName) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
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
