//! What holds a pod although it is to leave. Pure.

use std::fmt;

use super::disruptions_allowed::BudgetName;
use super::do_not_disrupt::DoNotDisrupt;

/// What holds a pod although it is to leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Blocker {
    /// A PodDisruptionBudget without room.
    Budget(BudgetName),
    /// More budgets than the eviction API can handle.
    SeveralBudgets,
    /// In a namespace that is being deleted nothing is evicted. It deletes its pods itself.
    Namespace,
    /// The pod wishes not to be disturbed.
    DoNotDisrupt(DoNotDisrupt),
    /// The API server refuses to evict it, or fails to, and nothing else is known to hold it: what it answered.
    FailingEviction(String),
}

impl fmt::Display for Blocker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Budget(budget) => write!(f, "PodDisruptionBudget {budget}"),
            Self::SeveralBudgets => f.write_str("more than one PodDisruptionBudget"),
            Self::Namespace => f.write_str("the deletion of its namespace"),
            Self::DoNotDisrupt(wish) => wish.fmt(f),
            Self::FailingEviction(why) => write!(f, "its failing eviction ({why})"),
        }
    }
}
