//! Actions: one file for each decision about a notice, and the steps that several actions share.
//!
//! An action gets the clients, the target and the record that it fills, and returns the outcome. An action that finds a
//! node whose labels name another manager returns [`Next::DecideAgain`] instead: no action decides about the notice.
//!
//! * `identify`: describes the instance, by EC2 or by its node
//! * `claim`: connects, finds the node, claims it; ends a notice whose node cannot be claimed
//! * `lifecycle`: completes lifecycle actions, also of an instance that is not a node
//! * `drain`, `cordon`, `launch`, `out_of_service`, `node_claim`: one decision each
//! * `after_drain`: waits for volumes and load balancers after the last pod
//! * `give_back`: removes Spillway's marks from a node
//! * `uncordon`, `undo_check`: give a node back at a notice, or at a scheduled time
//! * `look_up_maintenance`: finds maintenance in EC2 for which no notice came
//! * `found`: checks such maintenance again when it begins
//! * `pace`: postpones planned drains while others of the group and zone go on
//! * `replacement`: has the Auto Scaling group launch another instance
//! * `postpone`, `fan_out`, `continue_next`: hand the notice on: at a time, per instance, to the next invocation
//! * `dry_run`: describes the outcome of a decision without a change

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
pub(crate) mod look_up_maintenance;
pub(crate) mod node_claim;
pub(crate) mod out_of_service;
mod pace;
pub(crate) mod postpone;
mod replacement;
pub(crate) mod uncordon;
pub(crate) mod undo_check;

use spillway_core::instance::ManagedBy;
use spillway_core::outcome::Outcome;

/// Result of an action.
#[expect(clippy::large_enum_variant, reason = "there is one for each notice")]
#[derive(Debug, PartialEq)]
pub(crate) enum Next {
    /// The outcome of the notice.
    Done(Outcome),
    /// The node's labels name another manager than the instance's tags: the caller decides again.
    DecideAgain(ManagedBy),
}

impl<O: Into<Outcome>> From<O> for Next {
    fn from(outcome: O) -> Self {
        Self::Done(outcome.into())
    }
}

#[cfg(test)]
mod tests;
