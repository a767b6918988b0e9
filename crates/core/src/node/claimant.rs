//! Who claims a node, with what, and how it went.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Taint};
use kube_core::{Selector, Status};
use spillway_notice::continued::Earlier;

use super::claim_annotation::ClaimAnnotation;
use crate::instance::ManagedBy;

/// Who claims, what they leave on the node, and which nodes they may have.
#[derive(Debug, Clone)]
pub struct Claimant<'a> {
    pub annotation: ClaimAnnotation,
    /// Earlier invocations of the notice; empty in a first delivery. Their claim becomes this invocation's.
    pub earlier: &'a [Earlier],
    /// Whether the node comes back by a reboot, so that its boot id is of use.
    pub reboots: bool,
    /// Whether only a drain that has begun goes on: a node without a claim may have been given back.
    pub only_goes_on: bool,
    pub taint: Option<Taint>,
    /// Whether the node is taken out of load balancers.
    pub excludes: bool,
    pub managed_by: ManagedBy,
    pub selector: &'a Selector,
}

#[derive(Debug, Clone, PartialEq)]
pub enum How {
    /// The node is ours: we cordoned it.
    First,
    /// Somebody had cordoned it before; we drain it, and leave the cordon to them.
    CordonedByOthers,
    /// This delivery of the event had claimed it: an earlier attempt or an earlier invocation.
    Again,
    /// Another notice had claimed it, or another delivery of the same, and tells people about it.
    Joined { notice: String, event: String },
    /// It is not: an admission webhook or policy refused, or the API server failed or said nothing. The instance goes all the
    /// same, and its pods with it.
    Denied(Box<Status>),
}

impl How {
    pub fn joined(annotation: &ClaimAnnotation) -> Self {
        Self::Joined { notice: annotation.notice.clone(), event: annotation.event.clone() }
    }
}

#[derive(Debug, Clone)]
pub struct Claim {
    pub node: String,
    /// The node's provider id, by which the claim knew it.
    pub provider_id: String,
    pub how: How,
    /// The event whose annotation is on the node; empty if there is none.
    pub holder: String,
    pub labels: BTreeMap<String, String>,
    /// Time of a cordon before this claim, if it is known.
    pub cordoned: Option<Timestamp>,
}

impl Claim {
    pub fn is_joined(&self) -> bool {
        matches!(self.how, How::Joined { .. })
    }

    /// Whether that is the claimed node, and not one that has its name by now.
    pub fn is_of(&self, node: &Node) -> bool {
        node.spec.as_ref().and_then(|spec| spec.provider_id.as_ref()) == Some(&self.provider_id)
    }

    /// Why the node could not be cordoned, if its pods are evicted without that.
    pub fn denied(&self) -> Option<&Status> {
        match &self.how {
            How::Denied(status) => Some(status),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_claim_of_another_notice_is_joined() {
        let claim = |how| Claim {
            node: "n-1".to_owned(),
            provider_id: String::new(),
            how,
            holder: String::new(),
            labels: BTreeMap::new(),
            cordoned: None,
        };
        let joined = How::Joined { notice: "spot interruption".to_owned(), event: "e-1".to_owned() };
        assert!(claim(joined).is_joined());
        assert!(!claim(How::First).is_joined() && !claim(How::Again).is_joined());
        let status = Status::failure("no", "Forbidden");
        assert_eq!(claim(How::Denied(Box::new(status.clone()))).denied(), Some(&status));
        assert_eq!(claim(How::First).denied(), None);
    }
}
