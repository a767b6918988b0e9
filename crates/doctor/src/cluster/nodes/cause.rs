//! Causes that delay or block the drain of a node. Pure.

use std::collections::BTreeSet;

use spillway_core::drain::pod::blocker::BudgetName;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cause {
    NeverAllows(BudgetName),
    AllowsNoneNow(BudgetName),
    /// Budget whose pods on one node cannot all be evicted after a spot notice.
    AllowsFew(BudgetName, TooMany),
    SeveralBudgets(BTreeSet<BudgetName>),
    /// Budget, and the reason why the API server refuses to evict one of the budget's pods.
    Refused(BudgetName, String),
    /// Grace period too long for a spot notice. The text names the pod or its controller.
    Grace(String),
    /// Do-not-disrupt annotation. The text names the pod or its controller.
    DoNotDisrupt(String),
    /// Missing right to set the condition `DisruptionTarget` on the pods of a Job.
    NoDisruptionTarget,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TooMany {
    pub(super) at_a_time: usize,
    /// Number of the budget's pods on the node that has most of them.
    pub(super) on_a_node: usize,
}

impl Cause {
    /// Returns `true` if the cause prevents the drain of a node in two minutes.
    pub(super) fn prevents_drain(&self) -> bool {
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

/// Formats the budget as `namespace/name`.
fn full(budget: &BudgetName) -> String {
    format!("{}/{}", budget.namespace, budget.name)
}
