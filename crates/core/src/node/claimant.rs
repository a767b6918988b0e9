//! Request to claim a node, and the result of the claim.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Taint};
use kube_core::{Selector, Status};
use spillway_notice::continued::Earlier;

use super::claim_annotation::ClaimAnnotation;
use crate::instance::ManagedBy;

/// Request to claim a node: the annotation and other marks to set, and the conditions for the claim.
#[derive(Debug, Clone)]
pub struct Claimant<'a> {
    pub annotation: ClaimAnnotation,
    /// Earlier invocations for the notice. This invocation takes over their claim.
    pub earlier: &'a [Earlier],
    /// The node will reboot, so the claim records the node's boot id.
    pub reboots: bool,
    /// If `true`, the node must already have a claim: the maintenance has begun, and the node may have rebooted.
    pub requires_existing_claim: bool,
    pub taint: Option<Taint>,
    /// The claim also excludes the node from load balancers.
    pub excludes: bool,
    pub managed_by: ManagedBy,
    pub selector: &'a Selector,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ClaimResult {
    /// Spillway has claimed and cordoned the node.
    First,
    /// Spillway has claimed the node, which somebody else had cordoned before.
    CordonedByOthers,
    /// An earlier attempt or invocation for the same notice had claimed the node.
    Again,
    /// Another notice, or another delivery of the same event, had claimed the node.
    Joined { notice: String, event: String },
    /// The API server denied the claim or failed. The node's pods are evicted without a cordon.
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
    /// Event id in the node's claim annotation; empty after `Denied`.
    pub holder: String,
    pub labels: BTreeMap<String, String>,
    /// Time of the cordon that the node had before the claim, if known.
    pub cordoned: Option<Timestamp>,
    /// Deadline that this claim wrote to the annotation, if any.
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

    /// Returns the API server's response, if the claim was denied.
    pub fn denied(&self) -> Option<&Status> {
        match &self.how {
            ClaimResult::Denied(status) => Some(status),
            _ => None,
        }
    }
}
