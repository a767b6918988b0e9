//! Finds aws-node-termination-handler (NTH) in the cluster, because NTH would drain the same nodes.

use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::core::PartialObjectMeta;
use kube::{Api, Client};
use spillway_drainer::kube::{call, until};
use spillway_startup::logs::chain;
use tokio::time::Instant;

use crate::catalogue::{CheckId, FindingId};
use crate::report::{Check, Finding, Severity, counted, quoted};
use crate::retry_end;

const ID: CheckId = CheckId::Nth;
/// Label on pods of aws-node-termination-handler, from its Helm chart.
const LABEL: &str = "app.kubernetes.io/name=aws-node-termination-handler";

pub(super) async fn run_check(client: &Client, end: Instant) -> Check {
    let pods = Api::<Pod>::all(client.clone());
    // With `match_any`, the API server answers from its cache.
    let of_nth = ListParams::default().labels(LABEL).match_any();
    match until(retry_end(end), async || call(pods.list_metadata(&of_nth)).await, |_| ()).await {
        Ok(listed) => check(&listed.items),
        Err(error) => Check::unknown(ID, format!("cannot list pods of NTH: {}", chain(&error))),
    }
}

fn check(pods: &[PartialObjectMeta<Pod>]) -> Check {
    let Some(first) = pods.first() else {
        return Check::made(ID, "aws-node-termination-handler does not run here", Vec::new());
    };
    let namespace = first.metadata.namespace.as_deref().unwrap_or("default");
    let what = "drains the same nodes for the same notices, and may complete a hook during a drain of Spillway";
    let to_do = "during the migration separate the two by a tag (docs/from-nth.md), then uninstall it";
    let object = format!("aws-node-termination-handler in namespace {namespace}");
    let finding = Finding::new(FindingId::NthRuns, Severity::Warn, object, what, to_do)
        .with_command(format!("helm list --namespace {} --filter termination-handler", quoted(namespace)));
    Check::made(ID, format!("aws-node-termination-handler runs here: {}", counted(pods.len(), "pod")), vec![finding])
}
