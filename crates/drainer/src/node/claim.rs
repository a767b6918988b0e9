//! The claim: one JSON patch that tests the provider id, tests that nobody has cordoned the node,
//! claimed it or opted it out, then cordons it and leaves our marks. It cannot hit the wrong node, and
//! of two notices at once exactly one wins. The private DNS name is only a first guess at the node's
//! name; when it is right, the patch is all that is needed.

use k8s_openapi::api::core::v1::Node;
use kube::{Api, ResourceExt as _};

use super::claimant::{Claim, Claimant, How, Unclaimed};
use super::find::{by_name, by_provider_id, guesses};
use super::observed::{ClaimState, ObservedNode, bar, claim_state};
use super::patch::{self, Patched};
use crate::aws::instance::Instance;
use crate::kube::{ApiError, Attempted, is_of_admission, until_settled};

/// How often a claim is tried anew when the node changes between looking and patching.
const CLAIM_ATTEMPTS: u32 = 3;

impl Claimant<'_> {
    /// Why that node may not be claimed, if its labels say so.
    pub(crate) fn barred_from(&self, node: &Node) -> Option<Unclaimed> {
        bar(&ObservedNode::of(node), &node.name_any(), self)
    }

    /// Whether a claim needs to know more of the node than a patch can test, or would not find it untouched.
    fn looks_first(&self) -> bool {
        self.reboots || self.only_goes_on || self.handed_on_by.is_some() || !self.selector.selects_all()
    }
}

/// Finds the instance's node and claims it. The outer error is the API server's.
pub(crate) async fn claim(
    nodes: &Api<Node>,
    instance: &Instance,
    claimant: &Claimant<'_>,
) -> Result<Result<Claim, Unclaimed>, ApiError> {
    for name in guesses(instance) {
        match claim_by_name(nodes, &name, instance, claimant).await? {
            Err(Unclaimed::NoNode) => {}
            settled => return Ok(settled),
        }
    }
    match by_provider_id(nodes, &instance.provider_id()).await? {
        Some(name) => claim_by_name(nodes, &name, instance, claimant).await,
        None => Ok(Err(Unclaimed::NoNode)),
    }
}

/// Claims the node by that name, if it is the instance's.
async fn claim_by_name(
    nodes: &Api<Node>,
    name: &str,
    instance: &Instance,
    claimant: &Claimant<'_>,
) -> Result<Result<Claim, Unclaimed>, ApiError> {
    let looks_first = claimant.looks_first();
    let mut is_first = true;
    let attempt = async || {
        let observed = if std::mem::take(&mut is_first) && !looks_first {
            Some(ObservedNode::untouched())
        } else {
            by_name(nodes, name, instance).await?.as_ref().map(ObservedNode::of)
        };
        claim_as_observed(nodes, name, instance, claimant, observed).await
    };
    until_settled(CLAIM_ATTEMPTS, attempt).await
}

/// Claims the node if that is still as it was observed.
async fn claim_as_observed(
    nodes: &Api<Node>,
    name: &str,
    instance: &Instance,
    claimant: &Claimant<'_>,
    observed: Option<ObservedNode>,
) -> Result<Attempted<Result<Claim, Unclaimed>>, ApiError> {
    let own = &claimant.mark.event;
    let claimed = |how, holder: &str, labels: Option<_>| {
        let (node, holder, provider_id) = (name.to_owned(), holder.to_owned(), instance.provider_id());
        Ok(Attempted::Settled(Ok(Claim { node, provider_id, how, holder, labels: labels.unwrap_or_default() })))
    };
    let Some(observed) = observed else { return Ok(Attempted::Settled(Err(Unclaimed::NoNode))) };
    let labels = observed.labels.clone();
    let free = match claim_state(observed, name, claimant) {
        ClaimState::Free(free) => free,
        ClaimState::Taken(how) => {
            let holder = if let How::Joined { event, .. } = &how { event.clone() } else { own.clone() };
            return claimed(how, &holder, labels);
        }
        ClaimState::Barred(why) => return Ok(Attempted::Settled(Err(why))),
    };
    match patch::send(nodes, name, free.patch(&instance.provider_id(), claimant)).await {
        Ok(Patched::Done(node)) => claimed(free.how, own, node.labels),
        Ok(Patched::NoNode) => Ok(Attempted::Settled(Err(Unclaimed::NoNode))),
        Ok(Patched::Refused(status)) => Ok(Attempted::Contended(status)),
        // It is the instance's node, and free: a patch whose tests fail is not looked at by who admits.
        Err(ApiError::Refused(status)) if claimant.mark.until.is_some() && is_of_admission(&status) => {
            claimed(How::Denied(status), "", labels)
        }
        Err(error) => Err(error),
    }
}

/// Claims a node without effect, if it is free: why an admission webhook or policy would refuse. `None`: nothing was asked.
pub(crate) async fn rehearse(
    nodes: &Api<Node>,
    node: &Node,
    claimant: &Claimant<'_>,
) -> Result<Option<Result<(), ApiError>>, ApiError> {
    let name = node.name_any();
    let provider_id = node.spec.as_ref().and_then(|spec| spec.provider_id.as_deref()).unwrap_or_default();
    let ClaimState::Free(free) = claim_state(ObservedNode::of(node), &name, claimant) else { return Ok(None) };
    match patch::send_dry(nodes, &name, free.patch(provider_id, claimant)).await {
        Ok(Patched::Done(_)) => Ok(Some(Ok(()))),
        Ok(Patched::NoNode | Patched::Refused(_)) => Ok(None),
        Err(error) if error.is_of_admission() => Ok(Some(Err(error))),
        Err(error) => Err(error),
    }
}
