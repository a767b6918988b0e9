//! Selects the clusters to check: the requested cluster, the parameter `Clusters`, or all EKS clusters of the Region.

use spillway_core::cluster::ClusterName;
use spillway_drainer::Context;
use spillway_drainer::aws::{self, CallError};
use spillway_startup::logs::chain;
use tokio::time::Instant;

use crate::catalogue::{CheckId, FindingId};
use crate::report::{Check, Finding, REVERT_DRIFT, Severity, counted, quoted};
use crate::request::SelfTestRequest;
use crate::retry_end;

const ID: CheckId = CheckId::Clusters;
const LIST: &str = "eks:ListClusters";

pub(crate) async fn run_check(
    context: &Context,
    request: &SelfTestRequest,
    region: &str,
    end: Instant,
) -> (Vec<ClusterName>, Check) {
    let named = |clusters: Vec<ClusterName>, source: &str, findings: Vec<Finding>| {
        let check = Check::made(ID, format!("{} ({source})", names(&clusters)), findings);
        (clusters, check)
    };
    if let Some(cluster) = &request.cluster {
        return named(vec![cluster.clone()], "requested", Vec::new());
    }
    let listed = aws::until(LIST, retry_end(end), || list(context)).await;
    let chosen: Vec<_> = context.settings.clusters.iter().map(ClusterName::new).collect();
    if !chosen.is_empty() {
        let finding = match &listed {
            Ok(there) => not_named(there, &chosen, &context.settings.stack, region),
            Err(error) => Some(unknown(&chain(error))),
        };
        return named(chosen, "parameter Clusters", finding.into_iter().collect());
    }
    match listed {
        Ok(clusters) if clusters.is_empty() => {
            let what = "EKS has no cluster in this Region: no notice can be handled";
            let to_do = "deploy Spillway in the Region of your clusters";
            (
                Vec::new(),
                Check::made(ID, what, vec![Finding::new(FindingId::NoClusters, Severity::Warn, "EKS", what, to_do)]),
            )
        }
        Ok(clusters) => named(clusters, "all EKS clusters of this Region", Vec::new()),
        Err(error) => {
            let finding = unknown(&chain(&error));
            (Vec::new(), Check::made(ID, "cannot list the EKS clusters", vec![finding]))
        }
    }
}

fn names(clusters: &[ClusterName]) -> String {
    clusters.iter().map(ClusterName::as_str).collect::<Vec<_>>().join(", ")
}

fn unknown(error: &str) -> Finding {
    let what = format!("cannot list the EKS clusters: {error}");
    Finding::new(FindingId::ClustersUnknown, Severity::Unknown, LIST, what, REVERT_DRIFT)
}

/// Reports, as information only, EKS clusters that the parameter `Clusters` does not name.
fn not_named(there: &[ClusterName], chosen: &[ClusterName], stack: &str, region: &str) -> Option<Finding> {
    let left: Vec<_> = there.iter().filter(|cluster| !chosen.contains(cluster)).cloned().collect();
    let what = format!("the parameter Clusters does not name {}: notices of their nodes are ignored", names(&left));
    let to_do = "to drain their nodes, add them to the parameter Clusters and enroll them";
    let object = counted(left.len(), "EKS cluster");
    let each: Vec<_> = left.iter().map(|cluster| quoted(cluster.as_str())).collect();
    let of_stack = if stack.is_empty() { String::new() } else { format!(" --stack {}", quoted(stack)) };
    let command = format!("tools/spillway enroll{of_stack} --region {region} --cluster {}", each.join(" "));
    (!left.is_empty())
        .then(|| Finding::new(FindingId::ClusterNotNamed, Severity::Info, object, what, to_do).with_command(command))
}

async fn list(context: &Context) -> Result<Vec<ClusterName>, CallError> {
    context.access.clusters.list().await.map_err(|error| CallError::new(LIST, *error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unnamed_clusters_are_found_with_the_enroll_command() {
        let clusters = |names: &[&str]| names.iter().copied().map(ClusterName::new).collect::<Vec<_>>();
        let found =
            |chosen: &[&str]| not_named(&clusters(&["a", "b", "c"]), &clusters(chosen), "spillway", "us-east-1");
        assert_eq!(found(&["a", "b", "c", "gone"]), None);
        let finding = found(&["b"]).unwrap();
        assert_eq!((finding.id, finding.severity), (FindingId::ClusterNotNamed, Severity::Info));
        assert_eq!(finding.object, "2 EKS clusters");
        let command = "tools/spillway enroll --stack spillway --region us-east-1 --cluster a c";
        assert_eq!(finding.command.as_deref(), Some(command));
    }
}
