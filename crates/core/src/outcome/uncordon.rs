//! Result of an uncordon after a notice or an undo check. Pure.

use std::fmt;

use jiff::Timestamp;
use spillway_receipt::Ending;

use crate::cluster::ClusterName;
use crate::decision::Reason;
use crate::node::uncordon::{NotYet, UncordonCause, UncordonResult};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UncordonOutcome {
    /// `result` states that the node was uncordoned, or why not.
    Uncordoned { result: UncordonResult, cause: UncordonCause, cluster: ClusterName, provider_id: String },
    /// The node cannot be uncordoned yet. The next check is at `at`.
    CheckedTooEarly { node: String, why: NotYet, at: Timestamp },
    /// The cluster is unreachable. The next attempt is at `at`.
    NotReached { cluster: ClusterName, why: String, at: Timestamp },
    /// The instance or its cluster could not be looked up. The next attempt is at `at`.
    NotDescribed { why: String, at: Timestamp },
    /// The notice or the undo check is ignored.
    Ignored(Reason),
}

impl UncordonOutcome {
    pub(super) fn ending(&self) -> Ending {
        match self {
            Self::Uncordoned {
                result: UncordonResult::GivenBack { .. } | UncordonResult::CordonKept { .. }, ..
            } => Ending::Done,
            Self::CheckedTooEarly { .. } | Self::NotReached { .. } | Self::NotDescribed { .. } => Ending::Continued,
            Self::Uncordoned { .. } | Self::Ignored(_) => Ending::Ignored,
        }
    }
}

impl fmt::Display for UncordonOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uncordoned { result, cause, cluster, provider_id } => match result {
                UncordonResult::GivenBack { node } => write!(f, "node {node} is given back to use: {cause}"),
                UncordonResult::CordonKept { node, why } => {
                    write!(f, "node {node} has no marks of ours left: {cause}; {why}")
                }
                UncordonResult::NotReadyYet { node, why } => write!(f, "node {node} is not given back: {why}"),
                UncordonResult::OptedOut { node } => write!(f, "{}", Reason::OptedOut(node.clone())),
                UncordonResult::Held { node, notice, event } => {
                    write!(f, "node {node} is not given back: it is claimed for the {notice} {event}")
                }
                UncordonResult::NotOurs { node } => write!(f, "node {node} has no claim of ours"),
                UncordonResult::NoNode => {
                    let no_node = Reason::NoNode { cluster: cluster.clone(), provider_id: provider_id.to_owned() };
                    write!(f, "{no_node}")
                }
            },
            Self::CheckedTooEarly { node, why, at } => {
                write!(f, "node {node} is not given back yet: {why}; the next check is at {at}")
            }
            Self::NotReached { cluster, why, at } => {
                write!(f, "cluster {cluster} could not be reached, and is tried again at {at}: {why}")
            }
            Self::NotDescribed { why, at } => {
                write!(f, "AWS gave no answer about the instance; the next attempt is at {at}: {why}")
            }
            Self::Ignored(reason) => write!(f, "{reason}"),
        }
    }
}
