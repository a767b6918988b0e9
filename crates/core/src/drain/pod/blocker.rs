//! What can keep a pod from leaving. Pure.

use std::fmt;

use crate::drain::do_not_disrupt::DoNotDisrupt;

/// What keeps a pod from leaving.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Blocker {
    /// A PodDisruptionBudget that allows no disruption now.
    Budget(BudgetName),
    /// More budgets than the eviction API can handle: the names of the first few, once they are known.
    SeveralBudgets(Vec<String>),
    /// In a namespace that is being deleted nothing is evicted. It deletes its pods itself.
    Namespace,
    /// The pod's annotation says that it is not to be disrupted.
    DoNotDisrupt(DoNotDisrupt),
    /// The API server refuses to evict it, or fails to, and nothing else is known to block it: what it answered.
    FailingEviction(String),
}

impl Blocker {
    /// The budget that it is, if it is a single one.
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
                f.write_str("more than one PodDisruptionBudget (leave the pod one)")
            }
            Self::SeveralBudgets(names) => {
                write!(f, "PodDisruptionBudgets {} (leave the pod one)", names.join(" and "))
            }
            Self::Namespace => f.write_str("the deletion of its namespace"),
            Self::DoNotDisrupt(do_not_disrupt) => do_not_disrupt.fmt(f),
            Self::FailingEviction(why) => write!(f, "its failing eviction ({why})"),
        }
    }
}

/// Whether something blocks a pod, or has.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Blocked {
    /// Nothing has.
    #[default]
    Never,
    /// This did last, and does no longer.
    Formerly(Blocker),
    /// This does, as far as is known.
    By(Blocker),
}

impl Blocked {
    /// What blocks the pod now, as far as is known.
    pub fn by(&self) -> Option<&Blocker> {
        match self {
            Self::By(blocker) => Some(blocker),
            Self::Formerly(_) | Self::Never => None,
        }
    }

    /// What blocks the pod, or blocked it last.
    pub fn last(&self) -> Option<&Blocker> {
        match self {
            Self::By(blocker) | Self::Formerly(blocker) => Some(blocker),
            Self::Never => None,
        }
    }

    /// Notes that it does so no longer.
    pub fn end(&mut self) {
        *self = match std::mem::take(self) {
            Self::By(blocker) | Self::Formerly(blocker) => Self::Formerly(blocker),
            Self::Never => Self::Never,
        };
    }
}

/// A PodDisruptionBudget. People know it by its name: it stands in the namespace of its pods.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct BudgetName {
    pub namespace: String,
    pub name: String,
}

impl BudgetName {
    /// The policy that lets its pods go that are not Ready, and the command that sets it.
    pub fn protects_unready(&self) -> String {
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
