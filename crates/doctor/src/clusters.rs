//! Which clusters are looked at: the one that was asked about, those of the settings, or all that EKS names.

use spillway_core::cluster::ClusterName;
use spillway_drainer::Context;
use spillway_drainer::aws::{self, CallError};
use spillway_startup::logs::chain;
use tokio::time::Instant;

use crate::asked_until;
use crate::catalogue::{CheckId, FindingId};
use crate::report::{Check, Finding, PUT_BACK, Severity};
use crate::request::SelfTestRequest;

const ID: CheckId = CheckId::Clusters;
const LIST: &str = "eks:ListClusters";

/// The clusters, and the check that found them.
pub(crate) async fn look(context: &Context, request: &SelfTestRequest, end: Instant) -> (Vec<ClusterName>, Check) {
    let named = |clusters: Vec<ClusterName>, by: &str| {
        let names: Vec<_> = clusters.iter().map(ClusterName::as_str).collect();
        let check = Check::made(ID, format!("{}, {by}", names.join(", ")), Vec::new());
        (clusters, check)
    };
    if let Some(cluster) = &request.cluster {
        return named(vec![cluster.clone()], "the cluster that was asked about");
    }
    let chosen = &context.settings.clusters;
    if !chosen.is_empty() {
        return named(chosen.iter().map(ClusterName::new).collect(), "as SPILLWAY_CLUSTERS says");
    }
    match aws::until(LIST, asked_until(end), || list(context)).await {
        Ok(clusters) if clusters.is_empty() => {
            let what = "EKS has no cluster in this Region: there is nothing to drain";
            let to_do = "deploy Spillway in the Region of your clusters";
            (
                Vec::new(),
                Check::made(ID, what, vec![Finding::new(FindingId::NoClusters, Severity::Warn, "EKS", what, to_do)]),
            )
        }
        Ok(clusters) => named(clusters, "all that EKS has in this Region"),
        Err(error) => {
            let what = format!("cannot find out which clusters there are: {}", chain(&error));
            let to_do = format!("{PUT_BACK}; or name the clusters in the parameter Clusters");
            let finding = Finding::new(FindingId::ClustersUnknown, Severity::Unknown, LIST, &what, to_do);
            (Vec::new(), Check::made(ID, what, vec![finding]))
        }
    }
}

async fn list(context: &Context) -> Result<Vec<ClusterName>, CallError> {
    context.access.clusters.list().await.map_err(|error| CallError::new(LIST, *error))
}
