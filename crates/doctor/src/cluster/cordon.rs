//! Cordons a node as a dry run: a webhook or policy may refuse a change that RBAC allows.

use k8s_openapi::api::core::v1::Node;
use kube::{Api, Client, ResourceExt as _};
use spillway_core::instance::ManagedBy;
use spillway_core::node::claim_annotation::ClaimAnnotation;
use spillway_core::node::claimant::Claimant;
use spillway_core::node::labels::managed_by;
use spillway_core::node::taint;
use spillway_drainer::kube::{ApiError, call, until};
use spillway_drainer::{Rehearsed, rehearse};
use spillway_notice::Kind;
use spillway_settings::{LoadBalancers, Settings};
use spillway_startup::logs::chain;
use tokio::time::Instant;

use crate::catalogue::{CheckId, FindingId};
use crate::report::{Check, Finding, Severity};
use crate::retry_end;

const ID: CheckId = CheckId::Cordon;

/// Maximum number of nodes that the check tries to cordon. If a node is already cordoned, the next node is tried.
const TRIED: usize = 5;

pub(super) async fn run_check(
    client: &Client,
    settings: &Settings,
    nodes: impl Iterator<Item = &str>,
    request_id: &str,
    end: Instant,
) -> Check {
    let api = Api::<Node>::all(client.clone());
    for name in nodes.take(TRIED) {
        let rehearsed = until(retry_end(end), async || claim(&api, name, settings, request_id).await, |_| ()).await;
        match rehearsed {
            Ok(Rehearsed::NotFree) => {}
            Ok(Rehearsed::Passes) => {
                return Check::made(ID, "the API server allows Spillway to cordon a node", Vec::new());
            }
            Ok(Rehearsed::Denied(error)) => return denied(name, &error),
            Err(error) => {
                return Check::unknown(ID, format!("cannot rehearse the cordon of a node: {}", chain(&error)));
            }
        }
    }
    Check::skipped(ID, "no node can be cordoned right now")
}

/// Cordons one node as a dry run. Returns `NotFree` if the node no longer exists.
async fn claim(nodes: &Api<Node>, name: &str, settings: &Settings, request_id: &str) -> Result<Rehearsed, ApiError> {
    let Some(node) = call(nodes.get_opt(name)).await? else { return Ok(Rehearsed::NotFree) };
    let claimant = Claimant {
        annotation: ClaimAnnotation::new(request_id, request_id, Kind::Spot),
        earlier: &[],
        reboots: false,
        requires_existing_claim: false,
        taint: settings.taints.of_claim.and_then(|names| taint::for_notice(Kind::Spot, request_id, names)),
        excludes: settings.load_balancers != LoadBalancers::Leave,
        managed_by: managed_by(node.labels()).unwrap_or(ManagedBy::SelfManaged),
        selector: &settings.node_selector,
    };
    rehearse(nodes, &node, &claimant).await
}

fn denied(node: &str, error: &ApiError) -> Check {
    let what = format!(
        "cannot be cordoned, by a dry run ({error}): when its instance ends, its pods are evicted without a cordon, and new pods \
         may come; after a rebalance recommendation the notice fails"
    );
    let to_do = "allow the function's user to change nodes in the admission webhook or policy that the answer names; repair a \
                 webhook that does not answer, or set failurePolicy: Ignore";
    let finding = Finding::new(FindingId::CordonRefused, Severity::Fail, format!("Node {node}"), what, to_do);
    Check::made(ID, "the API server refuses the cordon of a node", vec![finding])
}
