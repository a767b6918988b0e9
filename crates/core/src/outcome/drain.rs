//! Result of a drain. Pure.

use std::fmt;

use spillway_receipt::{Counts, Ending};

use super::pods;
use crate::decision::Reason;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DrainOutcome {
    /// Every pod that had to leave has gone.
    Drained { node: String, counts: Counts },
    /// The node stopped answering when all remaining pods were already terminating.
    Silent { node: String, counts: Counts },
    /// Some pods are stuck in Terminating, and all other pods have gone.
    Stuck { node: String, counts: Counts },
    /// Another notice had claimed the node. This drain has no pod left to wait for.
    Joined { node: String, notice: String, event: String },
    /// Another invocation drains the node for the same event.
    DrainedByAnother { node: String },
    /// The lifecycle action ended before the drain did. `lost` is the number of pods left on the node, if the pods were listed.
    HookOver { node: String, lost: Option<usize> },
    /// The node was uncordoned during the drain.
    GivenBack { node: String },
}

impl DrainOutcome {
    /// Returns `true` if the drain has no pod left to wait for.
    pub fn is_empty_node(&self) -> bool {
        self.ending() == Ending::Drained
    }

    pub(super) fn ending(&self) -> Ending {
        match self {
            Self::Drained { .. } | Self::Silent { .. } | Self::Stuck { .. } => Ending::Drained,
            Self::Joined { .. } | Self::DrainedByAnother { .. } => Ending::Joined,
            Self::HookOver { .. } | Self::GivenBack { .. } => Ending::Ignored,
        }
    }
}

impl fmt::Display for DrainOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Drained { node, counts: Counts { moved: 0, .. } } => {
                write!(f, "no pod had to leave node {node}")
            }
            Self::Drained { node, counts: Counts { moved: 1, .. } } => {
                write!(f, "the one pod that had to leave node {node} has gone")
            }
            Self::Drained { node, counts } => {
                write!(f, "all {} pods that had to leave node {node} have gone", counts.moved)
            }
            Self::Silent { node, counts } => write!(
                f,
                "node {node} has stopped answering: {} left it, and {} that had to leave cannot be confirmed",
                pods(counts.moved),
                pods(counts.unconfirmed)
            ),
            Self::Stuck { node, counts } => write!(
                f,
                "{} left node {node}, and {} that had to leave terminated still, long after the grace: not waited for",
                pods(counts.moved),
                pods(counts.unconfirmed)
            ),
            Self::Joined { node, notice, event } => {
                write!(f, "node {node} was being drained for the {notice} {event}, and is empty")
            }
            Self::DrainedByAnother { node } => {
                write!(f, "another invocation drains node {node} for the same event")
            }
            Self::HookOver { node, lost: None } => {
                write!(f, "the lifecycle hook waits no longer; the pods of node {node} had not been listed")
            }
            Self::HookOver { node, lost: Some(lost) } => {
                let were = if *lost == 1 { "was" } else { "were" };
                write!(f, "the lifecycle hook waits no longer; {} {were} still on node {node}", pods(*lost))
            }
            Self::GivenBack { node } => write!(f, "{}", Reason::GivenBack(node.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drained_node_is_empty_and_any_other_is_not() {
        let node = || "n-1".to_owned();
        let drained = DrainOutcome::Drained { node: node(), counts: Counts { moved: 1, lost: 0, unconfirmed: 0 } };
        let given_back = DrainOutcome::GivenBack { node: node() };
        assert_eq!([drained, given_back].map(|outcome| outcome.is_empty_node()), [true, false]);
    }
}
