//! What is done about a notice: a file for each thing that the decision may name.
//!
//! An action is handed the clients, what the notice is about, and the record that it fills; it returns what it came to.
//! It decides nothing of the notice: one that may find a node whose labels name another manager returns [`Next`].
//!
//! * `identify`: who the instance is, by EC2 or by its node
//! * `claim`: connect, find the node, claim it; and what becomes of a notice whose node is not claimed
//! * `lifecycle`: who completes a lifecycle action, and with what, also of an instance that is not a node
//! * `drain`, `cordon`, `launch`, `out_of_service`, `node_claim`: one decision each
//! * `give_back`: taking off a node what was put on it
//! * `uncordon`, `undo_check`: giving a node back, at a notice or at a time
//! * `found`: maintenance that EC2 named and no notice brought
//! * `pace`: giving way to other drains, or waiting for them
//! * `postpone`, `fan_out`, `continue_next`: at a time, once for each instance, in the next invocation
//! * `dry_run`: what a decision would come to

pub(crate) mod after_drain;
mod claim;
pub(crate) mod continue_next;
pub(crate) mod cordon;
pub(crate) mod drain;
pub(crate) mod dry_run;
pub(crate) mod fan_out;
pub(crate) mod found;
mod give_back;
pub(crate) mod identify;
pub(crate) mod launch;
pub(crate) mod lifecycle;
pub(crate) mod node_claim;
pub(crate) mod out_of_service;
mod pace;
pub(crate) mod postpone;
pub(crate) mod uncordon;
pub(crate) mod undo_check;

use spillway_core::instance::ManagedBy;
use spillway_core::outcome::Outcome;
use spillway_settings::NodeAction;

/// What follows an action.
#[expect(clippy::large_enum_variant, reason = "there is one for each notice")]
#[derive(Debug, PartialEq)]
pub(crate) enum Next {
    /// Nothing: that is what the notice came to.
    Done(Outcome),
    /// The node's labels say otherwise than was decided by: it is decided again.
    DecideAgain(ByLabel),
}

/// What only a node's labels say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ByLabel {
    /// Somebody else manages it than its instance's tags said.
    ManagedBy(ManagedBy),
    /// What is to be done with it.
    Action(Option<NodeAction>),
}

impl<O: Into<Outcome>> From<O> for Next {
    fn from(outcome: O) -> Self {
        Self::Done(outcome.into())
    }
}

#[cfg(test)]
mod tests;
