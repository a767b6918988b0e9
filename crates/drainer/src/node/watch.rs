//! Watches one node.

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use spillway_core::kube::change::Change;
use spillway_core::node::claimant::Claim;
use spillway_core::node::observed::ObservedNode;
use spillway_startup::logs::chain;

use crate::kube::watch::{Selection, Watch, WatchEvent};

#[derive(Debug)]
pub(crate) struct NodeWatch {
    name: String,
    watch: Watch<Node>,
    /// `true` after the first logged failure of the watch. Later failures are not logged.
    is_logged: bool,
}

#[derive(Debug)]
pub(crate) enum ObservedNodeChange {
    Is(Box<Node>),
    NotThere,
    Unknown,
}

impl NodeWatch {
    pub(crate) fn of(nodes: Api<Node>, name: &str) -> Self {
        let selection = Selection { api: nodes, field_selector: Some(format!("metadata.name={name}")) };
        Self { name: name.to_owned(), watch: selection.watch(None), is_logged: false }
    }

    /// Returns the node at once, then after each change. Returns `None` if the node does not exist or cannot be watched.
    pub(crate) async fn next(&mut self) -> Option<Node> {
        match self.next_change().await {
            ObservedNodeChange::Is(node) => Some(*node),
            ObservedNodeChange::NotThere | ObservedNodeChange::Unknown => None,
        }
    }

    /// Works as [`Self::next`], but distinguishes a missing node from a failed watch. Cancel safe.
    pub(crate) async fn next_change(&mut self) -> ObservedNodeChange {
        loop {
            match self.watch.next().await {
                WatchEvent::Changed(Change::Applied(node)) => return ObservedNodeChange::Is(node),
                WatchEvent::Changed(Change::Listed(mut nodes)) => {
                    let node = nodes.pop().map(Box::new);
                    return node.map_or(ObservedNodeChange::NotThere, ObservedNodeChange::Is);
                }
                WatchEvent::Changed(Change::Deleted(_)) => return ObservedNodeChange::NotThere,
                WatchEvent::Begun => {}
                WatchEvent::Interrupted(error) => {
                    if !std::mem::replace(&mut self.is_logged, true) {
                        let node = &self.name;
                        tracing::warn!(
                            node.name = node,
                            error = chain(&error),
                            "cannot watch node {node}; polling every few seconds"
                        );
                    }
                    return ObservedNodeChange::Unknown;
                }
            }
        }
    }
}

/// Waits until the node no longer has a claim. Goes on waiting if the node is gone, is unreadable or belongs to another instance.
pub(crate) async fn until_unclaimed(nodes: &Api<Node>, claim: &Claim) {
    let mut watch = NodeWatch::of(nodes.clone(), &claim.node);
    loop {
        if watch.next().await.is_some_and(|node| claim.is_of(&node) && ObservedNode::of(&node).claim().is_none()) {
            return;
        }
    }
}
