//! Whether a node's kubelet still answers: a watch of the node.

use kube::{Api, Client};
use spillway_core::drain::kubelet::{Kubelet, kubelet_of};
use spillway_core::node::claimant::Claim;

use crate::node::{NodeWatch, ObservedNodeChange};

/// A watch of a node's kubelet.
#[derive(Debug)]
pub(crate) struct KubeletWatch {
    watch: NodeWatch,
    claim: Claim,
}

impl KubeletWatch {
    /// Watches that of the claimed node.
    pub(crate) fn of(client: &Client, claim: &Claim) -> Self {
        Self { watch: NodeWatch::of(Api::all(client.clone()), &claim.node), claim: claim.clone() }
    }

    /// What the node says, at first, and then after each change. One that cannot be watched is given the benefit of the
    /// doubt. Can be cancelled without losing a change.
    pub(crate) async fn next(&mut self) -> Kubelet {
        match self.watch.next_change().await {
            // The claimed one is no more.
            ObservedNodeChange::Is(node) if !self.claim.is_of(&node) => Kubelet::Silent,
            ObservedNodeChange::Is(node) => kubelet_of(&node),
            ObservedNodeChange::NotThere => Kubelet::Silent,
            ObservedNodeChange::NotSeen => Kubelet::Answers,
        }
    }
}
