//! Whether aws-node-termination-handler runs in the cluster: it would drain the same nodes.

use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::core::PartialObjectMeta;
use kube::{Api, Client};
use spillway_drainer::kube::{call, until};
use spillway_startup::logs::chain;
use tokio::time::Instant;

use crate::asked_until;
use crate::catalogue::{CheckId, FindingId};
use crate::report::{Check, Finding, Severity, counted, quoted};

const ID: CheckId = CheckId::Nth;
/// The label of NTH's pods, as its Helm chart sets it, in queue mode and in IMDS mode.
const LABEL: &str = "app.kubernetes.io/name=aws-node-termination-handler";

pub(super) async fn look(client: &Client, end: Instant) -> Check {
    let pods = Api::<Pod>::all(client.clone());
    // Any version of the list will do: the API server has one in memory, and goes through no other pod.
    let of_nth = ListParams::default().labels(LABEL).match_any();
    match until(asked_until(end), async || call(pods.list_metadata(&of_nth)).await, |_| ()).await {
        Ok(listed) => said(&listed.items),
        Err(error) => Check::unknown(ID, format!("its pods were not looked for: {}", chain(&error))),
    }
}

fn said(pods: &[PartialObjectMeta<Pod>]) -> Check {
    let Some(first) = pods.first() else {
        return Check::made(ID, "aws-node-termination-handler does not run here", Vec::new());
    };
    let namespace = first.metadata.namespace.as_deref().unwrap_or("default");
    let what = "it drains the same nodes for the same notices, by rules of its own, and may complete a hook while Spillway \
                still drains";
    let to_do =
        "while you change over keep the two apart by a tag (docs/from-nth.md has the whole way); then uninstall it";
    let object = format!("aws-node-termination-handler in namespace {namespace}");
    let finding = Finding::new(FindingId::NthRuns, Severity::Warn, object, what, to_do)
        .with_command(format!("helm list --namespace {} --filter termination-handler", quoted(namespace)));
    Check::made(ID, format!("aws-node-termination-handler runs here: {}", counted(pods.len(), "pod")), vec![finding])
}
