//! Whether a node could be cordoned: the claim of one, without effect. A webhook or a policy that admits no such change is in
//! no list of rights.

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

use crate::asked_until;
use crate::catalogue::{CheckId, FindingId};
use crate::report::{Check, Finding, Severity};

const ID: CheckId = CheckId::Cordon;

/// How many nodes are looked at to find one that nobody has cordoned.
const TRIED: usize = 5;

pub(super) async fn look(
    client: &Client,
    settings: &Settings,
    nodes: impl Iterator<Item = &str>,
    request_id: &str,
    end: Instant,
) -> Check {
    let api = Api::<Node>::all(client.clone());
    for name in nodes.take(TRIED) {
        let rehearsed = until(asked_until(end), async || claim(&api, name, settings, request_id).await, |_| ()).await;
        match rehearsed {
            Ok(Rehearsed::NotFree) => {}
            Ok(Rehearsed::Passes) => {
                return Check::made(ID, "the API server would let Spillway cordon a node", Vec::new());
            }
            Ok(Rehearsed::Denied(error)) => return denied(name, &error),
            Err(error) => return Check::unknown(ID, format!("the claim of a node was not tried: {}", chain(&error))),
        }
    }
    Check::skipped(ID, "no node is there that could be cordoned right now")
}

/// Rehearses the claim of one node. One that has gone is not free.
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
        "a node cannot be cordoned, as a dry run of node {node} says ({error}): if its instance goes, its pods are evicted all \
         the same, and new ones may come; after a rebalance recommendation the notice fails"
    );
    let to_do = "let the function's user change nodes, in the admission webhook or policy that the answer names; let one \
                 that does not answer run again, or be passed over (failurePolicy: Ignore)";
    let finding = Finding::new(FindingId::CordonRefused, Severity::Fail, format!("Node {node}"), what, to_do);
    Check::made(ID, "the API server would not let Spillway cordon a node", vec![finding])
}
