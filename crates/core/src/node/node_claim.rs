//! What came of handing a node to Karpenter.

use jiff::Timestamp;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HandedOver {
    /// Karpenter takes the node away.
    ToKarpenter { node: String, claim: String, until: Option<Timestamp> },
    /// It did so before; the deadline may have been brought forward.
    AlreadyLeaving { node: String, claim: String },
    /// The node has no `NodeClaim`, whatever its instance's tags say.
    NotKarpenters { node: String },
    /// Its `NodeClaim` names another instance, or none.
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
