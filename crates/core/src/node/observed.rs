//! What matters about a node as it was last seen, and what that means for a claim. Pure.

use std::collections::BTreeMap;

use jiff::Timestamp;
use json_patch::Patch;
use k8s_openapi::api::core::v1::{Node, Taint};
use kube_core::ResourceExt as _;
use serde_json::Value;
use spillway_notice::Kind;

use super::claim_annotation::{ANNOTATION, ClaimAnnotation};
use super::claimant::{Claimant, How};
use super::patch::Operations;
use super::unclaimed::Unclaimed;
use super::{labels, taint};
use crate::instance::ManagedBy;

#[derive(Debug, Clone, PartialEq)]
pub struct ObservedNode {
    pub cordoned: bool,
    /// A kubelet's node always has both; one that somebody made by hand may not.
    pub labels: Option<BTreeMap<String, String>>,
    pub annotations: Option<BTreeMap<String, String>>,
    pub taints: Vec<Taint>,
    /// Another one after each reboot.
    pub boot: Option<String>,
}

impl ObservedNode {
    /// The common case, which needs no look.
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

    /// Time since when the node has been cordoned, if the node controller has noted it (kubernetes, `node_lifecycle_controller.go`).
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

    /// The annotation of the claim that counts: it does while the node is cordoned.
    pub fn claim(&self) -> Option<ClaimAnnotation> {
        self.annotation().filter(|_| self.cordoned)
    }
}

impl Claimant<'_> {
    pub fn barred_from(&self, node: &Node) -> Option<Unclaimed> {
        bar(&ObservedNode::of(node), &node.name_any(), self)
    }

    /// Whether the instance goes in any case, and its pods with it, cordoned or not.
    pub fn instance_goes(&self) -> bool {
        self.annotation.kind().is_some_and(|kind| !kind.may_be_called_off())
    }

    /// Returns `true` if an earlier invocation of the notice held a claim of the node.
    fn has_claimed(&self) -> bool {
        self.earlier.iter().any(|earlier| earlier.node.is_some())
    }

    /// Whether a claim needs to know more of the node than a patch can test, or would not find it untouched.
    pub fn looks_first(&self) -> bool {
        // A node that has waited for its turn has a taint of ours.
        let has_waited = self.annotation.pace.is_some();
        self.reboots || self.only_goes_on || self.has_claimed() || has_waited || !self.selector.selects_all()
    }
}

#[derive(Debug, PartialEq)]
pub enum ClaimState {
    Barred(Unclaimed),
    /// Claimed and cordoned already.
    Taken(How),
    Free(Box<Free>),
}

#[derive(Debug, PartialEq)]
pub struct Free {
    seen: ObservedNode,
    pub how: How,
    annotation: ClaimAnnotation,
    taint: Option<Taint>,
}

/// What a claim would find on the node. A claim counts while the node is cordoned:
///
/// * A node that somebody has uncordoned, or whose claim we cannot read, is free. It is not if the node may have been given
///   back since we claimed it.
/// * A claim that an earlier invocation of a continuation held becomes ours, so that a second delivery finds the node taken.
/// * A continuation leaves the node to any other invocation that holds the claim of the same event.
/// * A claim for a milder reason gives way, so that no undo for the first gives back what is drained for the second.
/// * Any other claim means that the node is taken.
pub fn claim_state(seen: ObservedNode, name: &str, claimant: &Claimant<'_>) -> ClaimState {
    if let Some(bar) = bar(&seen, name, claimant) {
        return ClaimState::Barred(bar);
    }
    let wanted = &claimant.annotation;
    let boot = seen.boot.clone().filter(|_| claimant.reboots);
    let (how, annotation) = match &seen.claim() {
        None if claimant.has_claimed() && wanted.kind().is_some_and(Kind::may_be_called_off) => {
            return ClaimState::Barred(Unclaimed::GivenBack(name.to_owned()));
        }
        None if claimant.only_goes_on => return ClaimState::Barred(Unclaimed::MaintenanceBegan(name.to_owned())),
        None => {
            let how = if seen.cordoned { How::CordonedByOthers } else { How::First };
            (how, ClaimAnnotation { cordoned: !seen.cordoned, boot, ..wanted.clone() })
        }
        Some(annotation) if annotation.event == wanted.event && annotation.request == wanted.request => {
            return ClaimState::Taken(How::Again);
        }
        Some(annotation) if annotation.event == wanted.event && !claimant.earlier.is_empty() => {
            if !claimant.earlier.iter().any(|earlier| earlier.request_id == annotation.request) {
                return ClaimState::Barred(Unclaimed::DrainedByAnother(name.to_owned()));
            }
            let (cordoned, boot) = (annotation.cordoned, annotation.boot.clone());
            (How::Again, ClaimAnnotation { cordoned, boot, ..wanted.clone() })
        }
        Some(annotation) if annotation.gives_way_to(wanted) => {
            let until = annotation.until.into_iter().chain(wanted.until).min();
            let cordoned = annotation.cordoned;
            (How::joined(annotation), ClaimAnnotation { until, cordoned, boot, ..wanted.clone() })
        }
        Some(annotation) => return ClaimState::Taken(How::joined(annotation)),
    };
    let mut taints = seen.annotation().map(|annotation| annotation.taints).unwrap_or_default();
    // One of ours that somebody has taken off since is not put on again.
    let taint = claimant.taint.clone();
    let taint = taint.filter(|taint| taint::fits(taint, &seen.taints) && !taints.contains(&taint::text(taint)));
    taints.extend(taint.as_ref().map(taint::text));
    ClaimState::Free(Box::new(Free { seen, how, annotation: ClaimAnnotation { taints, ..annotation }, taint }))
}

fn bar(seen: &ObservedNode, name: &str, claimant: &Claimant<'_>) -> Option<Unclaimed> {
    let none = BTreeMap::new();
    let labels = seen.labels.as_ref().unwrap_or(&none);
    let managed_by = || labels::managed_by(labels).filter(|_| claimant.managed_by == ManagedBy::SelfManaged);
    labels::left_alone(labels, name, claimant.selector).or_else(|| managed_by().map(Unclaimed::ManagedBy))
}

impl Free {
    pub fn patch(&self, provider_id: &str, claimant: &Claimant<'_>) -> Patch {
        let Self { seen, annotation, taint, .. } = self;
        let (labels, annotations) = (seen.labels.as_ref(), seen.annotations.as_ref());
        let exclude = claimant.excludes && seen.label(labels::EXCLUDED).is_none();

        let mut patch = Operations::default();
        patch.test(&["spec", "providerID"], provider_id);
        patch.test_entry("annotations", ANNOTATION, annotations);
        patch.test_entry("labels", labels::IGNORE, labels);
        if claimant.managed_by == ManagedBy::SelfManaged {
            for label in labels::OF_OWNERS {
                patch.test_entry("labels", label, labels);
            }
        }
        if exclude {
            patch.test_entry("labels", labels::EXCLUDED, labels);
        }
        if taint.is_some() && seen.taints.is_empty() {
            patch.test(&["spec", "taints"], Value::Null);
        }
        // The node need not wait for its turn any more.
        let planned = seen.taints.iter().position(|taint| taint.key == taint::PLANNED).map(|at| at.to_string());
        if let Some(at) = &planned {
            patch.test(&["spec", "taints", at, "key"], taint::PLANNED);
        }
        patch.test(&["spec", "unschedulable"], seen.cordoned.then_some(true));

        if !seen.cordoned {
            patch.add(&["spec", "unschedulable"], true);
        }
        if let Some(at) = &planned {
            patch.remove(&["spec", "taints", at]);
        }
        if let Some(taint) = taint {
            patch.add_taint(taint, &seen.taints);
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
