//! Claims a node with one JSON patch, which tests the node, then cordons and annotates it.
//!
//! The patch fails if the node belongs to another instance, or if another notice has claimed the node. The first patch assumes
//! that the node's name is the instance's private DNS name. Usually this is true, and no other request is needed.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Node;
use kube::core::Status;
use kube::{Api, ResourceExt as _};
use spillway_core::instance::Instance;
use spillway_core::kube::status::is_of_admission;
use spillway_core::node::claimant::{Claim, ClaimResult, Claimant};
use spillway_core::node::observed::{ClaimState, ObservedNode, claim_state};
use spillway_core::node::unclaimed::Unclaimed;

use super::find::{by_name, by_provider_id, find, guesses};
use super::{NodeError, patch};
use crate::kube::{ApiError, until_settled};

/// Maximum number of attempts at a claim. An attempt fails if the node changes between the read and the patch.
const CLAIM_ATTEMPTS: u32 = 3;

pub(crate) async fn claim(nodes: &Api<Node>, instance: &Instance, claimant: &Claimant<'_>) -> Result<Claim, NodeError> {
    for name in guesses(instance) {
        match claim_by_name(nodes, &name, instance, claimant).await {
            Err(NodeError::Unclaimed(Unclaimed::NoNode)) => {}
            settled => return settled,
        }
    }
    let name = by_provider_id(nodes, instance).await?.ok_or(Unclaimed::NoNode)?;
    claim_by_name(nodes, &name, instance, claimant).await
}

async fn claim_by_name(
    nodes: &Api<Node>,
    name: &str,
    instance: &Instance,
    claimant: &Claimant<'_>,
) -> Result<Claim, NodeError> {
    let mut untouched = (!claimant.must_read_node_first()).then(ObservedNode::untouched);
    until_settled(CLAIM_ATTEMPTS, async || {
        if let Some(untouched) = untouched.take() {
            return claim_as_observed(nodes, name, instance.provider_id(), claimant, untouched).await;
        }
        let node = by_name(nodes, name, instance).await?.ok_or(Unclaimed::NoNode)?;
        claim_as_observed(nodes, name, provider_id(&node).to_owned(), claimant, ObservedNode::of(&node)).await
    })
    .await
}

/// Claims the node if the node has not changed since `observed`.
async fn claim_as_observed(
    nodes: &Api<Node>,
    name: &str,
    provider_id: String,
    claimant: &Claimant<'_>,
    observed: ObservedNode,
) -> Result<Claim, NodeError> {
    let own = &claimant.annotation.event;
    let cordoned = observed.cordoned_since();
    let claimed = |how, holder: &str, labels: Option<BTreeMap<String, String>>| Claim {
        node: name.to_owned(),
        provider_id: provider_id.clone(),
        how,
        holder: holder.to_owned(),
        labels: labels.unwrap_or_default(),
        cordoned,
        until: None,
    };
    let labels = observed.labels.clone();
    let free = match claim_state(observed, name, claimant) {
        ClaimState::Free(free) => free,
        ClaimState::Taken(how) => {
            let holder = holder(&how, claimant).to_owned();
            return Ok(claimed(how, &holder, labels));
        }
        ClaimState::Barred(why) => return Err(why.into()),
    };
    match patch::send(nodes, name, free.patch(&provider_id, claimant)).await {
        Ok(Some(node)) => {
            let until = free.until();
            Ok(Claim { until, ..claimed(free.how, own, node.labels) })
        }
        Ok(None) => Err(Unclaimed::NoNode.into()),
        // Admission runs only after the tests of the patch, so the node is the instance's and free.
        Err(ApiError::Refused(status))
            if (claimant.annotation.until.is_some() || claimant.instance_goes()) && is_of_admission(&status) =>
        {
            Ok(claimed(ClaimResult::Denied(status), "", labels))
        }
        Err(error) => Err(error.into()),
    }
}

fn provider_id(node: &Node) -> &str {
    node.spec.as_ref().and_then(|spec| spec.provider_id.as_deref()).unwrap_or_default()
}

/// Returns the event id of the notice that holds the claim.
fn holder<'a>(how: &'a ClaimResult, claimant: &'a Claimant<'_>) -> &'a str {
    if let ClaimResult::Joined { event, .. } = how { event } else { &claimant.annotation.event }
}

/// Reads the instance's node and tests whether the node could be claimed. `answer` is the API server's answer to a failed claim.
pub(crate) async fn observe_without_claiming(
    nodes: &Api<Node>,
    instance: &Instance,
    claimant: &Claimant<'_>,
    answer: Box<Status>,
) -> Result<Claim, NodeError> {
    let node = find(nodes, instance).await?.ok_or(Unclaimed::NoNode)?;
    let (name, observed) = (node.name_any(), ObservedNode::of(&node));
    let labels = observed.labels.clone().unwrap_or_default();
    let cordoned = observed.cordoned_since();
    let (how, holder) = match claim_state(observed, &name, claimant) {
        ClaimState::Free(_) => (ClaimResult::Denied(answer), String::new()),
        ClaimState::Taken(how) => {
            let holder = holder(&how, claimant).to_owned();
            (how, holder)
        }
        ClaimState::Barred(why) => return Err(why.into()),
    };
    Ok(Claim { node: name, provider_id: provider_id(&node).to_owned(), how, holder, labels, cordoned, until: None })
}

#[derive(Debug)]
pub enum Rehearsed {
    Passes,
    /// An admission webhook or policy refuses the claim, or a required webhook is down.
    Denied(ApiError),
    NotFree,
}

/// Tests with a dry run whether the node can be claimed.
pub async fn rehearse(nodes: &Api<Node>, node: &Node, claimant: &Claimant<'_>) -> Result<Rehearsed, ApiError> {
    let name = node.name_any();
    let ClaimState::Free(free) = claim_state(ObservedNode::of(node), &name, claimant) else {
        return Ok(Rehearsed::NotFree);
    };
    match patch::send_dry(nodes, &name, free.patch(provider_id(node), claimant)).await {
        Ok(Some(_)) => Ok(Rehearsed::Passes),
        Ok(None) | Err(ApiError::Contended(_)) => Ok(Rehearsed::NotFree),
        Err(error) if error.is_of_admission() || error.is_of_unreachable_webhook() => Ok(Rehearsed::Denied(error)),
        Err(error) => Err(error),
    }
}
