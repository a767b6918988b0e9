//! Reason not to claim a node.

use crate::instance::ManagedBy;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unclaimed {
    NoNode,
    OptedOut(String),
    /// The node was given back or uncordoned since an earlier invocation claimed it.
    GivenBack(String),
    /// Another invocation for the same event holds the claim of the node.
    DrainedByAnother(String),
    /// The planned start of the node's maintenance has passed, and the node has no claim for the maintenance.
    MaintenanceBegan(String),
    NotSelected(String),
    /// The owner by the node's labels differs from the owner by the tags of its instance.
    ManagedBy(ManagedBy),
}
