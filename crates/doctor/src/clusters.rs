//! Which clusters are looked at: the one that was asked about, those of the settings, or all that EKS names.

use spillway_core::cluster::ClusterName;
use spillway_drainer::Context;
use spillway_drainer::aws::{self, CallError};
use spillway_startup::logs::chain;
use tokio::time::Instant;

use crate::asked_until;
use crate::catalogue::{CheckId, FindingId};
use crate::report::{Check, Finding, PUT_BACK, Severity, counted, quoted};
use crate::request::SelfTestRequest;

const ID: CheckId = CheckId::Clusters;
const LIST: &str = "eks:ListClusters";

pub(crate) async fn look(
    context: &Context,
    request: &SelfTestRequest,
    region: &str,
    end: Instant,
) -> (Vec<ClusterName>, Check) {
    let named = |clusters: Vec<ClusterName>, by: &str, findings: Vec<Finding>| {
        let check = Check::made(ID, format!("{}, {by}", names(&clusters)), findings);
        (clusters, check)
    };
    if let Some(cluster) = &request.cluster {
        return named(vec![cluster.clone()], "the cluster that was asked about", Vec::new());
    }
    let listed = aws::until(LIST, asked_until(end), || list(context)).await;
    let chosen: Vec<_> = context.settings.clusters.iter().map(ClusterName::new).collect();
    if !chosen.is_empty() {
        let finding = match &listed {
            Ok(there) => not_named(there, &chosen, &context.settings.stack, region),
            Err(error) => Some(unknown(&chain(error))),
        };
        return named(chosen, "as Clusters says", finding.into_iter().collect());
    }
    match listed {
        Ok(clusters) if clusters.is_empty() => {
            let what = "EKS has no cluster in this Region: there is nothing to drain";
            let to_do = "deploy Spillway in the Region of your clusters";
            (
                Vec::new(),
                Check::made(ID, what, vec![Finding::new(FindingId::NoClusters, Severity::Warn, "EKS", what, to_do)]),
            )
        }
        Ok(clusters) => named(clusters, "all that EKS has in this Region", Vec::new()),
        Err(error) => {
            let finding = unknown(&chain(&error));
            (Vec::new(), Check::made(ID, "cannot find out which clusters there are", vec![finding]))
        }
    }
}

fn names(clusters: &[ClusterName]) -> String {
    clusters.iter().map(ClusterName::as_str).collect::<Vec<_>>().join(", ")
}

fn unknown(error: &str) -> Finding {
    let what = format!("cannot find out which clusters there are: {error}");
    Finding::new(FindingId::ClustersUnknown, Severity::Unknown, LIST, what, PUT_BACK)
}

/// The clusters that the setting does not name: one that was made since may be missing there. No warning, because to name some
/// is how the others are left alone.
fn not_named(there: &[ClusterName], chosen: &[ClusterName], stack: &str, region: &str) -> Option<Finding> {
    let left: Vec<_> = there.iter().filter(|cluster| !chosen.contains(cluster)).cloned().collect();
    let what = format!("Clusters does not name {}: notices of their nodes are ignored", names(&left));
    let to_do = "if Spillway is to drain their nodes, add them to the parameter Clusters, and let the function in";
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
    fn clusters_that_the_setting_does_not_name_are_listed_with_the_command_that_enrolls_them() {
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
