//! Decides from a node's state whether Spillway can claim the node. Pure.

use std::collections::BTreeMap;

use jiff::Timestamp;
use json_patch::Patch;
use k8s_openapi::api::core::v1::{Node, Taint};
use kube_core::ResourceExt as _;
use serde_json::Value;
use spillway_notice::Kind;

use super::claim_annotation::{ANNOTATION, ClaimAnnotation};
use super::claimant::{ClaimResult, Claimant};
use super::patch::Operations;
use super::unclaimed::Unclaimed;
use super::{labels, taint};
use crate::instance::ManagedBy;

#[derive(Debug, Clone, PartialEq)]
pub struct ObservedNode {
    pub cordoned: bool,
    /// Labels; `None` if the node has no labels.
    pub labels: Option<BTreeMap<String, String>>,
    pub annotations: Option<BTreeMap<String, String>>,
    pub taints: Vec<Taint>,
    /// Boot id, which changes with each reboot.
    pub boot: Option<String>,
}

impl ObservedNode {
    /// Returns the state of a node that is neither cordoned nor tainted. The first attempt at a claim assumes this
    /// state, to save a read.
    pub fn untouched() -> Self {
        let none = || Some(BTreeMap::new());
        Self { cordoned: false, labels: none(), annotations: none(), taints: Vec::new(), boot: None }
    }

    pub fn of(node: &Node) -> Self {
        let spec = node.spec.as_ref();
        let info = node.status.as_ref().and_then(|status| status.node_info.as_ref());
        Self {
            cordoned: spec.and_then(|spec| spec.unschedulable).unwrap_or(false),
            labels: node.metadata.labels.clone(),
            annotations: node.metadata.annotations.clone(),
            taints: spec.and_then(|spec| spec.taints.clone()).unwrap_or_default(),
            boot: info.map(|info| info.boot_id.clone()).filter(|boot| !boot.is_empty()),
        }
    }

    /// Returns the time of the cordon, which the node controller records in the taint
    /// `node.kubernetes.io/unschedulable`.
    pub fn cordoned_since(&self) -> Option<Timestamp> {
        let taint = self.taints.iter().find(|taint| taint.key == "node.kubernetes.io/unschedulable")?;
        taint.time_added.as_ref().filter(|_| self.cordoned).map(|at| at.0)
    }

    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels.as_ref()?.get(key).map(String::as_str)
    }

    pub fn annotation(&self) -> Option<ClaimAnnotation> {
        ClaimAnnotation::read(self.annotations.as_ref()?.get(ANNOTATION)?)
    }

    /// Returns the claim annotation; `None` if the node is not cordoned or has no claim.
    pub fn claim(&self) -> Option<ClaimAnnotation> {
        self.annotation().filter(|_| self.cordoned)
    }
}

impl Claimant<'_> {
    pub fn barred_from(&self, node: &Node) -> Option<Unclaimed> {
        bar(&ObservedNode::of(node), &node.name_any(), self)
    }

    /// Returns `true` if AWS certainly takes the instance after this kind of notice.
    pub fn instance_goes(&self) -> bool {
        self.annotation.kind().is_some_and(|kind| !kind.may_stay())
    }

    /// Returns `true` if an earlier invocation of the notice claimed the node.
    fn has_claimed(&self) -> bool {
        self.earlier.iter().any(|earlier| earlier.node.is_some())
    }

    /// Returns `true` if the node must be read before the claim, because the claim depends on the node's state.
    pub fn must_read_node_first(&self) -> bool {
        // A node that has waited for its drain has the taint `spillway/planned`.
        let has_waited = self.annotation.pace.is_some();
        self.reboots || self.requires_existing_claim || self.has_claimed() || has_waited || !self.selector.selects_all()
    }
}

#[derive(Debug, PartialEq)]
pub enum ClaimState {
    Barred(Unclaimed),
    /// The node is already claimed and cordoned.
    Taken(ClaimResult),
    Free(Box<Free>),
}

#[derive(Debug, PartialEq)]
pub struct Free {
    observed: ObservedNode,
    pub how: ClaimResult,
    annotation: ClaimAnnotation,
    taint: Option<Taint>,
}

/// Decides whether `claimant` can claim the node. If the node is not cordoned, its claim annotation does not count. Rules:
///
/// * No claim: `claimant` gets the node. `claimant` is refused if `requires_existing_claim` is set, or if an earlier invocation's
///   claim was removed and AWS may keep the instance.
/// * Claim of this invocation: nothing changes.
/// * Claim for the same event by another invocation: `claimant` takes it over from an invocation in `claimant.earlier`. If
///   `claimant.earlier` has other invocations only, `claimant` is refused.
/// * Claim of a less severe notice: replaced. Otherwise the undo check of that notice would uncordon the node.
/// * Any other claim: `claimant` joins it.
pub fn claim_state(observed: ObservedNode, name: &str, claimant: &Claimant<'_>) -> ClaimState {
    if let Some(bar) = bar(&observed, name, claimant) {
        return ClaimState::Barred(bar);
    }
    let wanted = &claimant.annotation;
    let boot = observed.boot.clone().filter(|_| claimant.reboots);
    let (how, annotation) = match &observed.claim() {
        None if claimant.has_claimed() && wanted.kind().is_some_and(Kind::may_stay) => {
            return ClaimState::Barred(Unclaimed::GivenBack(name.to_owned()));
        }
        None if claimant.requires_existing_claim => {
            return ClaimState::Barred(Unclaimed::MaintenanceBegan(name.to_owned()));
        }
        None => {
            let how = if observed.cordoned { ClaimResult::CordonedByOthers } else { ClaimResult::First };
            (how, ClaimAnnotation { cordoned: !observed.cordoned, boot, ..wanted.clone() })
        }
        Some(annotation) if annotation.event == wanted.event && annotation.request == wanted.request => {
            return ClaimState::Taken(ClaimResult::Again);
        }
        Some(annotation) if annotation.event == wanted.event && !claimant.earlier.is_empty() => {
            if !claimant.earlier.iter().any(|earlier| earlier.request_id == annotation.request) {
                return ClaimState::Barred(Unclaimed::DrainedByAnother(name.to_owned()));
            }
            let (cordoned, boot) = (annotation.cordoned, annotation.boot.clone());
            (ClaimResult::Again, ClaimAnnotation { cordoned, boot, ..wanted.clone() })
        }
        Some(annotation) if annotation.gives_way_to(wanted) => {
            let until = annotation.until.into_iter().chain(wanted.until).min();
            let cordoned = annotation.cordoned;
            (ClaimResult::joined(annotation), ClaimAnnotation { until, cordoned, boot, ..wanted.clone() })
        }
        Some(annotation) => return ClaimState::Taken(ClaimResult::joined(annotation)),
    };
    let mut taints = observed.annotation().map(|annotation| annotation.taints).unwrap_or_default();
    // If somebody has removed Spillway's taint, the taint is not added again.
    let taint = claimant.taint.clone();
    let taint = taint.filter(|taint| taint::fits(taint, &observed.taints) && !taints.contains(&taint::text(taint)));
    taints.extend(taint.as_ref().map(taint::text));
    ClaimState::Free(Box::new(Free { observed, how, annotation: ClaimAnnotation { taints, ..annotation }, taint }))
}

fn bar(observed: &ObservedNode, name: &str, claimant: &Claimant<'_>) -> Option<Unclaimed> {
    let none = BTreeMap::new();
    let labels = observed.labels.as_ref().unwrap_or(&none);
    let managed_by = || labels::managed_by(labels).filter(|_| claimant.managed_by == ManagedBy::SelfManaged);
    labels::left_alone(labels, name, claimant.selector).or_else(|| managed_by().map(Unclaimed::ManagedBy))
}

impl Free {
    /// Returns the deadline in the new claim annotation.
    pub fn until(&self) -> Option<Timestamp> {
        self.annotation.until
    }

    pub fn patch(&self, provider_id: &str, claimant: &Claimant<'_>) -> Patch {
        let Self { observed, annotation, taint, .. } = self;
        let (labels, annotations) = (observed.labels.as_ref(), observed.annotations.as_ref());
        let exclude = claimant.excludes && observed.label(labels::EXCLUDED).is_none();

        let mut patch = Operations::default();
        patch.test(&["spec", "providerID"], provider_id);
        patch.test_entry("annotations", ANNOTATION, annotations);
        patch.test_entry("labels", labels::IGNORE, labels);
        if claimant.managed_by == ManagedBy::SelfManaged {
            for label in labels::OWNER_LABELS {
                patch.test_entry("labels", label, labels);
            }
        }
        if exclude {
            patch.test_entry("labels", labels::EXCLUDED, labels);
        }
        if taint.is_some() && observed.taints.is_empty() {
            patch.test(&["spec", "taints"], Value::Null);
        }
        // The wait for a planned drain is over, so its taint is removed.
        let planned = observed.taints.iter().position(|taint| taint.key == taint::PLANNED).map(|at| at.to_string());
        if let Some(at) = &planned {
            patch.test(&["spec", "taints", at, "key"], taint::PLANNED);
        }
        patch.test(&["spec", "unschedulable"], observed.cordoned.then_some(true));

        if !observed.cordoned {
            patch.add(&["spec", "unschedulable"], true);
        }
        if let Some(at) = &planned {
            patch.remove(&["spec", "taints", at]);
        }
        if let Some(taint) = taint {
            patch.add_taint(taint, &observed.taints);
        }
        if exclude {
            patch.add_entry("labels", labels::EXCLUDED, labels::EXCLUDED_BY_US, labels);
        }
        patch.add_entry("annotations", ANNOTATION, &annotation.text(), annotations);
        patch.done()
    }
}

#[cfg(test)]
mod tests;
