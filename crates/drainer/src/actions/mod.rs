//! Actions that carry out the decision about a notice, such as drain, cordon and uncordon.
//!
//! An action fills the receipt's record and returns the outcome. An action never decides: if node labels and instance tags name
//! different managers of the node, the action returns [`Next::DecideAgain`].

pub(crate) mod after_drain;
mod claim;
pub(crate) mod continue_next;
pub(crate) mod cordon;
pub(crate) mod drain;
pub(crate) mod dry_run;
pub(crate) mod fan_out;
mod give_back;
pub(crate) mod identify;
pub(crate) mod launch;
pub(crate) mod lifecycle;
pub(crate) mod look_up_maintenance;
pub(crate) mod node_claim;
pub(crate) mod out_of_service;
mod pace;
pub(crate) mod postpone;
pub(crate) mod recheck_maintenance;
mod replacement;
pub(crate) mod uncordon;
pub(crate) mod undo_check;

use spillway_core::instance::ManagedBy;
use spillway_core::outcome::Outcome;

#[expect(clippy::large_enum_variant, reason = "there is one for each notice")]
#[derive(Debug, PartialEq)]
pub(crate) enum Next {
    Done(Outcome),
    /// The node's labels name this manager, such as Karpenter, but the instance's tags name another. The caller decides again.
    DecideAgain(ManagedBy),
}

impl<O: Into<Outcome>> From<O> for Next {
    fn from(outcome: O) -> Self {
        Self::Done(outcome.into())
    }
}

#[cfg(test)]
mod tests;
