//! Stand-in for Karpenter's controller: NodeClaims that become nodes, and what happens to a node when its NodeClaim is
//! deleted. The definitions of NodeClaim and NodePool are Karpenter's own.
//!
//! It is as small as its use here: one node a claim, one replacement for each node that goes. Of a drain it leaves out
//! the order by priority, `karpenter.sh/do-not-disrupt` and the wait for volumes.
//!
//! # Layout
//! * this file: what a test holds;
//! * `termination`: what becomes of a deleted one, in order;
//! * `drain`: how the pods of its node leave.

mod drain;
mod termination;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use kube::api::{ApiResource, DynamicObject, PostParams, WatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;
use tokio::process::Command;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::sleep;

use crate::cluster::Cluster;
use crate::error::BedError;
use crate::node_claim::{self, NodeClaim, node_claims};
use crate::setup;
use crate::watch::{Objects, until};

/// Longer than any test.
const LONG: Duration = Duration::from_hours(1);

/// Karpenter at work for one NodePool, until it is dropped. Tests that share a cluster have a pool each.
#[derive(Debug)]
pub struct Karpenter {
    cluster: Cluster,
    pool: String,
    work: JoinHandle<()>,
}

impl Karpenter {
    /// Installs Karpenter's definitions, makes the pool, and sees to the NodeClaims of the pool from now on.
    pub async fn start(cluster: &Cluster, pool: &str) -> Result<Self, BedError> {
        install_definitions(cluster).await?;
        create_pool(cluster, pool).await?;
        let work = tokio::spawn(work(cluster.clone(), pool.to_owned()));
        Ok(Self { cluster: cluster.clone(), pool: pool.to_owned(), work })
    }

    /// A new NodeClaim of the pool: [`crate::NodeOptions::node_claim`] makes its node.
    pub async fn claim(&self) -> Result<NodeClaim, BedError> {
        node_claim::create(&self.cluster, &self.pool).await
    }

    /// Waits until a NodeClaim has gone: its node has been drained and deleted, its instance terminated.
    pub async fn until_gone(&self, claim: &NodeClaim) -> Result<(), BedError> {
        let claims = node_claims(&self.cluster.admin());
        let own = WatchParams::default().fields(&format!("metadata.name={}", claim.name_any()));
        let what = format!("NodeClaim {} to go", claim.name_any());
        until(&claims, &own, &what, Duration::from_mins(1), |claims: &Objects<NodeClaim>| {
            if claims.is_empty() { Ok(()) } else { Err("it is still there".to_owned()) }
        })
        .await
    }
}

impl Drop for Karpenter {
    fn drop(&mut self) {
        self.work.abort();
    }
}

/// Sees to each NodeClaim of the pool that is deleted, several at once. Never returns.
async fn work(cluster: Cluster, pool: String) {
    let claims = node_claims(&cluster.admin());
    let of_pool = WatchParams::default().labels(&format!("{}={pool}", node_claim::POOL));
    let mut terminations = JoinSet::new();
    let mut seen = BTreeSet::new();
    loop {
        let deleted = until(&claims, &of_pool, "a deleted NodeClaim", LONG, |claims: &Objects<NodeClaim>| {
            let deleted = claims
                .values()
                .find(|claim| claim.metadata.deletion_timestamp.is_some() && !seen.contains(&claim.uid()));
            deleted.cloned().ok_or_else(|| "none".to_owned())
        });
        match deleted.await {
            Ok(claim) => {
                seen.insert(claim.uid());
                let cluster = cluster.clone();
                terminations.spawn(async move {
                    if let Err(error) = termination::terminate(&cluster, &claim).await {
                        eprintln!("karpenter, NodeClaim {}: {}", claim.name_any(), error.story());
                    }
                });
            }
            Err(error) => {
                eprintln!("karpenter: {}", error.story());
                // Only not to spin: the API server should answer.
                sleep(Duration::from_secs(1)).await;
            }
        }
    }
}

/// As often as wanted: what is there already stays.
async fn install_definitions(cluster: &Cluster) -> Result<(), BedError> {
    let folder = setup::karpenter()?;
    kubectl(cluster, &["apply", "--server-side", "--filename"], &folder).await?;
    kubectl(cluster, &["wait", "--for=condition=Established", "--timeout=60s", "--filename"], &folder).await
}

async fn kubectl(cluster: &Cluster, arguments: &[&str], folder: &PathBuf) -> Result<(), BedError> {
    let doing = || format!("install Karpenter's definitions: kubectl {}", arguments[0]);
    let output = Command::new(&cluster.kubectl)
        .arg(format!("--kubeconfig={}", cluster.kubeconfig.display()))
        .args(arguments)
        .arg(folder)
        .env_clear()
        .env("HOME", &cluster.dir)
        .kill_on_drop(true)
        .output()
        .await
        .map_err(BedError::io(doing()))?;
    if output.status.success() {
        return Ok(());
    }
    Err(BedError::io(doing())(std::io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned())))
}

async fn create_pool(cluster: &Cluster, name: &str) -> Result<(), BedError> {
    let kind = ApiResource {
        group: node_claim::GROUP.to_owned(),
        version: "v1".to_owned(),
        api_version: node_claim::API_VERSION.to_owned(),
        kind: "NodePool".to_owned(),
        plural: "nodepools".to_owned(),
    };
    let template = json!({"spec": node_claim::spec()});
    let pool = DynamicObject::new(name, &kind).data(json!({"spec": {"template": template}}));
    let creating = BedError::kubernetes(format!("create NodePool {name}"));
    let pools = Api::<DynamicObject>::all_with(cluster.admin(), &kind);
    pools.create(&PostParams::default(), &pool).await.map(drop).map_err(creating)
}
