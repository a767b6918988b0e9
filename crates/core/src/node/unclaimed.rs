//! Reason not to claim a node.

use crate::instance::ManagedBy;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unclaimed {
    NoNode,
    OptedOut(String),
    /// The node was given back or uncordoned since our claim.
    GivenBack(String),
    /// Another invocation holds the claim of the event on the node.
    DrainedByAnother(String),
    /// The node's maintenance should have begun, and the node has no claim for it.
    MaintenanceBegan(String),
    NotSelected(String),
    /// The node's labels name another owner than its instance's tags.
    ManagedBy(ManagedBy),
}
