//! Why a node is not claimed.

use crate::instance::ManagedBy;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unclaimed {
    NoNode,
    OptedOut(String),
    /// Since we claimed that node it was given back, or somebody uncordoned it.
    GivenBack(String),
    /// Another invocation holds the claim of the same event on that node.
    DrainedByAnother(String),
    /// The maintenance of that node should have begun, and no claim for it is there.
    MaintenanceBegan(String),
    NotSelected(String),
    /// Its labels say that somebody else manages it than its instance's tags did.
    ManagedBy(ManagedBy),
}
