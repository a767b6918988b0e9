//! A claim of a node: the request for it, and its result.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Taint};
use kube_core::{Selector, Status};
use spillway_notice::continued::Earlier;

use super::claim_annotation::ClaimAnnotation;
use crate::instance::ManagedBy;

/// Request for a claim: annotation and other marks to set on the node, and conditions.
#[derive(Debug, Clone)]
pub struct Claimant<'a> {
    pub annotation: ClaimAnnotation,
    /// Earlier invocations of the notice. Their claim passes to this invocation; empty in the first invocation.
    pub earlier: &'a [Earlier],
    /// The claim records the boot id, because the node comes back after a reboot.
    pub reboots: bool,
    /// Only an existing claim is taken over, because a node without a claim may have been uncordoned after its drain.
    pub requires_existing_claim: bool,
    pub taint: Option<Taint>,
    /// The node is excluded from load balancers.
    pub excludes: bool,
    pub managed_by: ManagedBy,
    pub selector: &'a Selector,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ClaimResult {
    /// Spillway has claimed and cordoned the node.
    First,
    /// Spillway has claimed the node. The cordon is somebody else's and stays.
    CordonedByOthers,
    /// The node was claimed before: by an earlier attempt at the same delivery of the event, or by an earlier invocation.
    Again,
    /// Another notice, or another delivery of the event, claimed the node before and publishes the drain's events.
    Joined { notice: String, event: String },
    /// An admission webhook or policy denied the claim, or the API server failed or did not answer. The node's pods are evicted
    /// without a cordon, because the instance goes.
    Denied(Box<Status>),
}

impl ClaimResult {
    pub fn joined(annotation: &ClaimAnnotation) -> Self {
        Self::Joined { notice: annotation.notice.clone(), event: annotation.event.clone() }
    }
}

#[derive(Debug, Clone)]
pub struct Claim {
    pub node: String,
    /// The node's provider id at the time of the claim.
    pub provider_id: String,
    pub how: ClaimResult,
    /// Event in the claim annotation on the node; empty without an annotation.
    pub holder: String,
    pub labels: BTreeMap<String, String>,
    /// Time of a cordon before the claim, if known.
    pub cordoned: Option<Timestamp>,
    /// Deadline in the claim annotation.
    pub until: Option<Timestamp>,
}

impl Claim {
    pub fn is_joined(&self) -> bool {
        matches!(self.how, ClaimResult::Joined { .. })
    }

    /// Returns `true` if `node` is the claimed node, and not another node of the same name.
    pub fn is_of(&self, node: &Node) -> bool {
        node.spec.as_ref().and_then(|spec| spec.provider_id.as_ref()) == Some(&self.provider_id)
    }

    /// Refusal of the claim, if the pods are evicted without a cordon.
    pub fn denied(&self) -> Option<&Status> {
        match &self.how {
            ClaimResult::Denied(status) => Some(status),
            _ => None,
        }
    }
}
