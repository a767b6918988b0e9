//! Hands a node over to Karpenter: sets the deadline of the node's `NodeClaim`, then deletes the `NodeClaim`.
//!
//! After the deletion of the `NodeClaim`, Karpenter starts a replacement and drains the node. Without a deadline, a blocked pod
//! would go down with the instance. With a deadline, Karpenter deletes the pod early enough for the whole grace period
//! (kubernetes-sigs/karpenter v1.12, `pkg/controllers/nodeclaim/lifecycle` and `pkg/controllers/node/termination`). If the
//! `NodeClaim` has an earlier deadline, Spillway keeps the earlier deadline.
//!
//! Owner references of nodes can be forged. Therefore the `NodeClaim` itself must name the instance.

use jiff::{Timestamp, Unit};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, Preconditions};
use kube::core::Selector;
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};
use spillway_core::instance::{Instance, ManagedBy};
use spillway_core::kube::status::{is_missing, is_of_another_uid};
use spillway_core::node::labels::{left_alone, managed_by};
use spillway_core::node::node_claim::HandedOver;
use spillway_core::node::unclaimed::Unclaimed;

use super::NodeError;
use super::find::find;
use crate::kube::{ApiError, call, if_found, until_settled};

const API_VERSION: &str = "karpenter.sh/v1";
const KIND: &str = "NodeClaim";
pub(crate) const NODE_CLAIMS: &str = "nodeclaims";
/// Karpenter's annotation with the deadline of a `NodeClaim`, in RFC 3339.
const TERMINATION_TIMESTAMP: &str = "karpenter.sh/nodeclaim-termination-timestamp";
/// Maximum number of attempts to set the deadline. An attempt fails if the `NodeClaim` changes between the read and the patch.
const STAMP_ATTEMPTS: u32 = 3;

/// Sets the `deadline`, if any, on the `NodeClaim` of the instance's node, then deletes the `NodeClaim`.
pub(crate) async fn hand_over(
    client: &Client,
    instance: &Instance,
    selector: &Selector,
    deadline: Option<Timestamp>,
) -> Result<HandedOver, NodeError> {
    let found = find(&Api::all(client.clone()), instance).await?.ok_or(Unclaimed::NoNode)?;
    let node = found.name_any();
    if let Some(why) = left_alone(found.labels(), &node, selector) {
        return Err(why.into());
    }
    let Some(owner) = node_claim_of(&found.metadata) else {
        // Without Karpenter's label the node is self-managed.
        return if managed_by(found.labels()).is_none() {
            Err(Unclaimed::ManagedBy(ManagedBy::SelfManaged).into())
        } else {
            Ok(HandedOver::NotKarpenters { node })
        };
    };
    let claims = node_claims(client);
    let claim = owner.name.clone();
    Ok(match set_deadline(&claims, owner, &instance.provider_id(), deadline.map(whole_second_before)).await? {
        NodeClaimState::OfAnother { provider_id } => HandedOver::OfAnother { node, claim, provider_id },
        NodeClaimState::Here { until } if delete(&claims, owner).await? => {
            HandedOver::ToKarpenter { node, claim, until }
        }
        NodeClaimState::Here { .. } | NodeClaimState::Leaving => HandedOver::AlreadyLeaving { node, claim },
    })
}

enum NodeClaimState {
    Here {
        until: Option<Timestamp>,
    },
    /// The `NodeClaim` is being deleted, or is gone.
    Leaving,
    OfAnother {
        provider_id: Option<String>,
    },
}

/// Sets the deadline of the `NodeClaim`, but keeps an earlier deadline.
async fn set_deadline(
    claims: &Api<DynamicObject>,
    owner: &OwnerReference,
    instance: &str,
    deadline: Option<Timestamp>,
) -> Result<NodeClaimState, ApiError> {
    until_settled(STAMP_ATTEMPTS, async || {
        let found = if_found(call(claims.get(&owner.name)).await, NODE_CLAIMS)?;
        let Some(claim) = found else { return Ok(NodeClaimState::Leaving) };
        let (claim, provider_id) = (claim.metadata, provider_id(&claim.data));
        if claim.uid.as_ref() != Some(&owner.uid) {
            return Ok(NodeClaimState::Leaving);
        }
        if provider_id.as_deref() != Some(instance) {
            return Ok(NodeClaimState::OfAnother { provider_id });
        }
        let state = match claim.deletion_timestamp {
            Some(_) => NodeClaimState::Leaving,
            None => NodeClaimState::Here { until: written(&claim).into_iter().chain(deadline).min() },
        };
        let Some(deadline) = deadline.filter(|deadline| is_earlier(*deadline, &claim)) else { return Ok(state) };
        let patch = Patch::Merge(stamp_patch(deadline, &claim));
        let patched = call(claims.patch_metadata(&owner.name, &PatchParams::default(), &patch)).await;
        match if_found(patched, NODE_CLAIMS) {
            Ok(patched) => Ok(patched.map_or(NodeClaimState::Leaving, |_| state)),
            Err(ApiError::Refused(status)) if status.code == 409 => Err(ApiError::Contended(status)),
            Err(error) => Err(error),
        }
    })
    .await
}

/// Deletes the `NodeClaim` that owns the node. Returns `false` if this `NodeClaim` no longer exists.
async fn delete(claims: &Api<DynamicObject>, owner: &OwnerReference) -> Result<bool, ApiError> {
    let preconditions = Some(Preconditions { uid: Some(owner.uid.clone()), resource_version: None });
    let this_one = DeleteParams { preconditions, ..DeleteParams::default() };
    match call(claims.delete(&owner.name, &this_one)).await {
        Ok(_) => Ok(true),
        Err(ApiError::Refused(status)) if is_of_another_uid(&status) || is_missing(&status, NODE_CLAIMS) => Ok(false),
        Err(error) => Err(error),
    }
}

fn node_claims(client: &Client) -> Api<DynamicObject> {
    let (group, version) = API_VERSION.split_once('/').expect("the constant has both");
    let kind = ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version: API_VERSION.to_owned(),
        kind: KIND.to_owned(),
        plural: NODE_CLAIMS.to_owned(),
    };
    Api::all_with(client.clone(), &kind)
}

fn node_claim_of(node: &ObjectMeta) -> Option<&OwnerReference> {
    let mut owners = node.owner_references.iter().flatten();
    owners.find(|owner| owner.kind == KIND && owner.api_version == API_VERSION)
}

fn provider_id(claim: &Value) -> Option<String> {
    claim.pointer("/status/providerID")?.as_str().map(str::to_owned)
}

/// Rounds down to whole seconds, the precision of Karpenter's annotation.
fn whole_second_before(deadline: Timestamp) -> Timestamp {
    let floor = jiff::TimestampRound::new().smallest(Unit::Second).mode(jiff::RoundMode::Floor);
    deadline.round(floor).unwrap_or(deadline)
}

fn is_earlier(deadline: Timestamp, claim: &ObjectMeta) -> bool {
    written(claim).is_none_or(|there| deadline < there)
}

/// Reads the deadline of the `NodeClaim`. `None` if the deadline is missing or unreadable.
fn written(claim: &ObjectMeta) -> Option<Timestamp> {
    claim.annotations.as_ref()?.get(TERMINATION_TIMESTAMP)?.parse().ok()
}

/// Returns the patch that sets the deadline. The patch fails if the `NodeClaim` has changed since the read.
fn stamp_patch(deadline: Timestamp, claim: &ObjectMeta) -> Value {
    json!({
        "metadata": {
            "resourceVersion": claim.resource_version,
            "annotations": {TERMINATION_TIMESTAMP: deadline.to_string()},
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::at;

    fn claim(annotation: Option<&str>) -> ObjectMeta {
        let annotations = annotation.map(|text| json!({TERMINATION_TIMESTAMP: text}));
        serde_json::from_value(json!({"name": "default-x7k2p", "resourceVersion": "42", "annotations": annotations}))
            .unwrap()
    }

    fn owned_by(kind: &str, api_version: &str) -> ObjectMeta {
        let owner = json!({"apiVersion": api_version, "kind": kind, "name": "default-x7k2p", "uid": "u-1"});
        serde_json::from_value(json!({"name": "ip-10-0-0-1.ec2.internal", "ownerReferences": [owner]})).unwrap()
    }

    #[test]
    fn node_claim_is_the_owner_of_the_node() {
        let node = owned_by("NodeClaim", "karpenter.sh/v1");
        assert_eq!(node_claim_of(&node).map(|owner| owner.name.as_str()), Some("default-x7k2p"));
        for others in [owned_by("Machine", "karpenter.sh/v1"), owned_by("NodeClaim", "example.test/v1"), claim(None)] {
            assert_eq!(node_claim_of(&others), None);
        }
    }

    #[test]
    fn node_claim_names_its_instance_in_its_status() {
        let of = |claim: Value| provider_id(&claim);
        let id = "aws:///us-east-1a/i-0123456789abcdef0";
        assert_eq!(of(json!({"spec": {}, "status": {"providerID": id}})).as_deref(), Some(id));
        assert_eq!(of(json!({"spec": {"providerID": id}, "status": {}})), None, "not launched");
        assert_eq!(of(json!({})), None);
    }

    #[test]
    fn deadline_is_brought_forward_or_replaced_if_unreadable() {
        let deadline = at("2026-11-21T16:00:00Z");
        assert!(is_earlier(deadline, &claim(None)));
        assert!(is_earlier(deadline, &claim(Some("2026-11-21T16:00:01Z"))));
        assert!(is_earlier(deadline, &claim(Some("2026-11-21T17:30:00+01:00"))));
        assert!(!is_earlier(deadline, &claim(Some("2026-11-21T16:00:00Z"))));
        assert!(!is_earlier(deadline, &claim(Some("2026-11-21T15:59:00Z"))));
        assert!(is_earlier(deadline, &claim(Some("soon"))));
    }
}
