//! Describes what blocks the eviction of a pod, such as a PodDisruptionBudget. Pure.

use std::fmt;

use crate::drain::do_not_disrupt::DoNotDisrupt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Blocker {
    /// A PodDisruptionBudget that allows no disruption now.
    Budget(BudgetName),
    /// Several PodDisruptionBudgets, which the eviction API does not support. Holds some of their names, if known.
    SeveralBudgets(Vec<String>),
    /// The pod's namespace is being deleted, so the API server refuses evictions.
    Namespace,
    DoNotDisrupt(DoNotDisrupt),
    /// The eviction fails or is refused. Holds the error message.
    FailingEviction(String),
}

impl Blocker {
    pub fn budget(&self) -> Option<&BudgetName> {
        match self {
            Self::Budget(budget) => Some(budget),
            _ => None,
        }
    }
}

impl fmt::Display for Blocker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Budget(budget) => write!(f, "PodDisruptionBudget {budget}"),
            Self::SeveralBudgets(names) if names.is_empty() => {
                f.write_str("more than one PodDisruptionBudget (only one may select the pod)")
            }
            Self::SeveralBudgets(names) => {
                write!(f, "PodDisruptionBudgets {} (only one may select the pod)", names.join(" and "))
            }
            Self::Namespace => f.write_str("the deletion of its namespace"),
            Self::DoNotDisrupt(do_not_disrupt) => do_not_disrupt.fmt(f),
            Self::FailingEviction(why) => write!(f, "its failing eviction ({why})"),
        }
    }
}

/// Present or former blocker of a pod.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Blocked {
    #[default]
    Never,
    /// Last blocker of a pod that is no longer blocked.
    Formerly(Blocker),
    /// Blocker that blocks the pod now.
    By(Blocker),
}

impl Blocked {
    /// Returns what blocks the pod now. `None`: nothing blocks the pod.
    pub fn by(&self) -> Option<&Blocker> {
        match self {
            Self::By(blocker) => Some(blocker),
            Self::Formerly(_) | Self::Never => None,
        }
    }

    /// Returns what blocks the pod now, or blocked it last.
    pub fn last(&self) -> Option<&Blocker> {
        match self {
            Self::By(blocker) | Self::Formerly(blocker) => Some(blocker),
            Self::Never => None,
        }
    }

    pub fn end(&mut self) {
        *self = match std::mem::take(self) {
            Self::By(blocker) | Self::Formerly(blocker) => Self::Formerly(blocker),
            Self::Never => Self::Never,
        };
    }
}

/// Namespace and name of a PodDisruptionBudget. Messages show only the name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct BudgetName {
    pub namespace: String,
    pub name: String,
}

impl BudgetName {
    /// Returns advice to set `unhealthyPodEvictionPolicy: AlwaysAllow`. The advice contains the kubectl command.
    pub fn unready_pods_advice(&self) -> String {
        let Self { namespace, name } = self;
        format!(
            "budget {name} protects pods that are not Ready; set unhealthyPodEvictionPolicy: AlwaysAllow (kubectl --namespace {namespace} \
             patch poddisruptionbudget {name} --type merge --patch '{{\"spec\":{{\"unhealthyPodEvictionPolicy\":\"AlwaysAllow\"}}}}')"
        )
    }
}

impl fmt::Display for BudgetName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}
