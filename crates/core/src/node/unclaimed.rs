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
    /// The node's maintenance should have begun, and the node has no claim for it.
    MaintenanceBegan(String),
    NotSelected(String),
    /// The node's labels name an owner, unlike the tags of its instance.
    ManagedBy(ManagedBy),
}
