//! Deletion of a node's `NodeClaim`, so that Karpenter drains it.

use jiff::Timestamp;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HandedOver {
    /// Spillway has deleted the `NodeClaim`, so Karpenter drains and removes the node.
    ToKarpenter { node: String, claim: String, until: Option<Timestamp> },
    /// The `NodeClaim` was deleted before this action. Spillway may have brought its deadline forward.
    AlreadyLeaving { node: String, claim: String },
    /// The node has no `NodeClaim`.
    NotKarpenters { node: String },
    /// The `NodeClaim` names another instance, or none.
    OfAnother { node: String, claim: String, provider_id: Option<String> },
}

impl HandedOver {
    pub fn node(&self) -> &str {
        match self {
            Self::ToKarpenter { node, .. }
            | Self::AlreadyLeaving { node, .. }
            | Self::NotKarpenters { node }
            | Self::OfAnother { node, .. } => node,
        }
    }
}
