//! One node, watched: who waits for something of it looks when it has changed, and not before.

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
    /// Whether it was logged that the node cannot be watched: once is enough.
    is_logged: bool,
}

#[derive(Debug)]
pub(crate) enum ObservedNodeChange {
    Is(Box<Node>),
    NotThere,
    NotSeen,
}

impl NodeWatch {
    pub(crate) fn of(nodes: Api<Node>, name: &str) -> Self {
        let selection = Selection { api: nodes, field_selector: Some(format!("metadata.name={name}")) };
        Self { name: name.to_owned(), watch: selection.watch(None), is_logged: false }
    }

    /// The node as it is, at first, and then after each change. `None`: it is not there, or cannot be watched for the
    /// moment, which may be because the right is missing: who waits looks for themselves then.
    pub(crate) async fn next(&mut self) -> Option<Node> {
        match self.next_change().await {
            ObservedNodeChange::Is(node) => Some(*node),
            ObservedNodeChange::NotThere | ObservedNodeChange::NotSeen => None,
        }
    }

    /// Like `next`, but distinguishes "deleted" from "watch failed". Can be cancelled without losing a change.
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
                            "cannot watch node {node}; looking every few seconds"
                        );
                    }
                    return ObservedNodeChange::NotSeen;
                }
            }
        }
    }
}

/// Ends when nobody's claim is on the node any more: AWS may call off, or put off, what it was claimed for, or somebody may
/// uncordon it. A node that cannot be seen, is gone, or is another's by that name, is not in use again.
pub(crate) async fn until_given_back(nodes: &Api<Node>, claim: &Claim) {
    let mut watch = NodeWatch::of(nodes.clone(), &claim.node);
    loop {
        if watch.next().await.is_some_and(|node| claim.is_of(&node) && ObservedNode::of(&node).claim().is_none()) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::api_server::{NODE, status};
    use crate::test_support::context::{TestContext, client};
    use crate::test_support::log::logged_in_time;
    use crate::test_support::script::call;

    #[test]
    fn that_a_node_cannot_be_watched_is_told_once() {
        let refused = call("GET /api/v1/nodes").says(403, status(403, "Forbidden", "nodes")).repeated();
        let lines = logged_in_time(async {
            let context = TestContext::new(&[], [refused], []);
            let mut watch = NodeWatch::of(Api::all(client(&context).await), NODE);
            for _ in 0..3 {
                assert!(watch.next().await.is_none());
            }
        });
        assert_eq!(lines, [format!("WARN: cannot watch node {NODE}; looking every few seconds")]);
    }
}
