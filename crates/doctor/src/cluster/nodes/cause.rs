//! Causes that hold a drain up. Pure.

use std::collections::BTreeSet;

use spillway_core::drain::pod::blocker::BudgetName;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cause {
    NeverAllows(BudgetName),
    AllowsNoneNow(BudgetName),
    /// Budget that allows fewer disruptions at a time than one node has of its pods.
    AllowsFew(BudgetName, TooMany),
    SeveralBudgets(BTreeSet<BudgetName>),
    /// Budget of a pod whose eviction is refused, with the reason.
    Refused(BudgetName, String),
    /// Controller or pod with a grace period longer than a spot notice.
    Grace(String),
    /// Controller or pod with a do-not-disrupt annotation.
    DoNotDisrupt(String),
    /// Missing right to set the condition `DisruptionTarget` on pods of Jobs with budgets.
    NoDisruptionTarget,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TooMany {
    pub(super) at_a_time: usize,
    /// Pods on the node with most of them.
    pub(super) on_a_node: usize,
}

impl Cause {
    /// Returns `true` if the nodes could not be drained in two minutes without damage.
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
