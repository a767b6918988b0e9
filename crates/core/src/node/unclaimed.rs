//! Why a node is not claimed.

use spillway_settings::NodeAction;

use crate::instance::ManagedBy;

/// Why there is no claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unclaimed {
    /// The cluster has no such node.
    NoNode,
    /// That node's label opts it out.
    OptedOut(String),
    /// That node's label says that it is to be left.
    LeftByLabel(String),
    /// Since we claimed that node it was given back, or somebody uncordoned it.
    GivenBack(String),
    /// Another invocation holds the claim of the same event on that node.
    DrainedByAnother(String),
    /// The maintenance of that node should have begun, and no claim for it is there.
    MaintenanceBegan(String),
    /// That node lacks the labels that the settings ask for.
    NotSelected(String),
    /// Its labels say that somebody else manages it than its instance's tags did.
    ManagedBy(ManagedBy),
    /// Its label says otherwise what is to be done with it than was decided by.
    Action(Option<NodeAction>),
}
