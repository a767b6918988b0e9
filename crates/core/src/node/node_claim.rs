//! Result of deleting a node's `NodeClaim`, so that Karpenter drains the node.

use jiff::Timestamp;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HandedOver {
    /// Spillway has deleted the `NodeClaim`, so Karpenter drains and removes the node.
    ToKarpenter { node: String, claim: String, until: Option<Timestamp> },
    /// The `NodeClaim` was already deleted or being deleted.
    AlreadyLeaving { node: String, claim: String },
    /// The node has no `NodeClaim`.
    NotKarpenters { node: String },
    /// The `NodeClaim` belongs to another instance, or names no instance.
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
