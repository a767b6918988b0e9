//! Causes that delay or block the drain of a node. Pure.

use std::collections::BTreeSet;

use spillway_core::drain::pod::blocker::BudgetName;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cause {
    NeverAllows(BudgetName),
    AllowsNoneNow(BudgetName),
    /// Budget that allows too few disruptions at a time for the number of its pods on one node.
    AllowsFew(BudgetName, TooMany),
    SeveralBudgets(BTreeSet<BudgetName>),
    /// Budget of a pod whose eviction the API server refuses, with the reason.
    Refused(BudgetName, String),
    /// Controller whose pods have a grace period longer than a spot notice, or a pod without a controller.
    Grace(String),
    /// Controller whose pods have a do-not-disrupt annotation, or a pod without a controller.
    DoNotDisrupt(String),
    /// Missing right to set the condition `DisruptionTarget` on pods of Jobs that a budget covers.
    NoDisruptionTarget,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TooMany {
    pub(super) at_a_time: usize,
    /// Largest number of the budget's pods on one node.
    pub(super) on_a_node: usize,
}

impl Cause {
    /// Returns `true` if the cause prevents a clean drain of its nodes in two minutes.
    pub(super) fn holds_its_nodes(&self) -> bool {
        !matches!(self, Self::NoDisruptionTarget)
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
            Self::NoDisruptionTarget => "patch pods/status".to_owned(),
        }
    }
}

/// `namespace/name` of a budget.
fn full(budget: &BudgetName) -> String {
    format!("{}/{}", budget.namespace, budget.name)
}
