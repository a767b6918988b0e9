//! Reason not to claim a node.

use crate::instance::ManagedBy;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unclaimed {
    NoNode,
    OptedOut(String),
    /// The node was uncordoned after an earlier invocation claimed the node.
    GivenBack(String),
    /// Another invocation for the same event holds the claim of the node.
    DrainedByAnother(String),
    /// The planned start of the node's maintenance has passed, and the node has no claim for the maintenance.
    MaintenanceBegan(String),
    NotSelected(String),
    /// The node's labels name this owner, but the instance's tags do not.
    ManagedBy(ManagedBy),
}
