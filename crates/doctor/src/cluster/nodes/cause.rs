//! What holds a drain up. Pure.

use std::collections::BTreeSet;

use spillway_core::drain::pod::blocker::BudgetName;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cause {
    NeverAllows(BudgetName),
    AllowsNoneNow(BudgetName),
    /// It lets fewer pods go at a time than one node has of it, by so much.
    AllowsFew(BudgetName, TooMany),
    SeveralBudgets(BTreeSet<BudgetName>),
    /// The API server would not evict a pod of the budget, for that reason.
    Refused(BudgetName, String),
    /// Pods of this controller, or this pod, ask for more time than there is.
    Grace(String),
    /// Pods of this controller, or this pod, have a do-not-disrupt annotation.
    DoNotDisrupt(String),
    /// Pods of Jobs are behind budgets, and nobody could tell the Jobs that they were disrupted.
    JobsAreNotTold,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TooMany {
    pub(super) at_a_time: usize,
    /// On the node that has most of them.
    pub(super) on_a_node: usize,
}

impl Cause {
    /// Whether a drain of two minutes breaks something, be it only a do-not-disrupt.
    pub(super) fn holds_its_nodes(&self) -> bool {
        !matches!(self, Self::JobsAreNotTold)
    }

    pub(super) fn object(&self) -> String {
        match self {
            Self::NeverAllows(budget)
            | Self::AllowsNoneNow(budget)
            | Self::AllowsFew(budget, _)
            | Self::Refused(budget, _) => {
                format!("PodDisruptionBudget {}", full(budget))
            }
            Self::SeveralBudgets(budgets) => {
                format!("PodDisruptionBudgets {}", budgets.iter().map(full).collect::<Vec<_>>().join(" and "))
            }
            Self::Grace(owner) | Self::DoNotDisrupt(owner) => owner.clone(),
            Self::JobsAreNotTold => "patch pods/status".to_owned(),
        }
    }
}

/// A budget's name with its namespace: the report is of many.
fn full(budget: &BudgetName) -> String {
    format!("{}/{}", budget.namespace, budget.name)
}
