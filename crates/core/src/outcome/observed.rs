//! What a drain came to that others did, and that was only watched. Pure.

use std::fmt;

use super::pods;
use crate::instance::ManagedBy;

/// What was seen of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed {
    pub node: String,
    pub managed_by: ManagedBy,
    /// How many pods have left.
    pub gone: usize,
    /// How many had to.
    pub all: usize,
    /// Those that were still there, or the first few of them, each with why.
    pub left: Vec<String>,
    /// Whether the node was deleted meanwhile.
    pub is_deleted: bool,
}

impl fmt::Display for Observed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { node, managed_by, gone, all, left, is_deleted } = self;
        let who = if *managed_by == ManagedBy::Karpenter { "Karpenter" } else { "EKS" };
        write!(f, "watched node {node}, which {who} drains: {gone} of {} had gone", pods(*all))?;
        if *is_deleted {
            f.write_str(" when it was deleted")?;
        }
        if left.is_empty() { Ok(()) } else { write!(f, "; still there: {}", left.join("; ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_who_drains_how_many_have_gone_and_what_is_left_and_why() {
        let empty = Observed {
            node: "n-1".to_owned(),
            managed_by: ManagedBy::ManagedNodeGroup,
            gone: 1,
            all: 1,
            left: Vec::new(),
            is_deleted: false,
        };
        assert_eq!(empty.to_string(), "watched node n-1, which EKS drains: 1 of 1 pod had gone");
        let left = vec!["shop/db-0: PodDisruptionBudget db blocked it".to_owned()];
        let cut = Observed { managed_by: ManagedBy::Karpenter, all: 2, left, is_deleted: true, ..empty };
        assert_eq!(
            cut.to_string(),
            "watched node n-1, which Karpenter drains: 1 of 2 pods had gone when it was deleted; still there: \
             shop/db-0: PodDisruptionBudget db blocked it"
        );
    }
}
